"""Checks, one module each with a ``CHECK``; the registry finds them by itself."""
