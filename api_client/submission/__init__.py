"""From a config to a job: the archive, what a caller overrides, the team, and the calls in their order."""
