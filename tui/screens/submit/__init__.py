"""A new job out of a config file: choose, review, submit."""
