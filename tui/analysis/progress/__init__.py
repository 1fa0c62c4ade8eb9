"""Track a run's progress from its log lines, with one stream per node."""
