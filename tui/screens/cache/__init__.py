"""The cache of a project."""
