"""One run as it is now: the snapshot that screens and commands read."""
