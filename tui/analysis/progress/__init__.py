"""How far a run is: folded out of its log lines, one stream a node."""
