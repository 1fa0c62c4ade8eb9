"""The simulated fleet: a demo world of training jobs, computed from a script and a clock."""
