"""Checks, one module for each idea; the registry finds them by itself."""
