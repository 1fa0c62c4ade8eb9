"""Facts about checkpoints, the comparison of two, and the work since the last checkpoint."""
