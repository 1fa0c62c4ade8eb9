"""A run's current state: the snapshot that screens and commands use."""
