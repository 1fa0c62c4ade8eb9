"""Saving what a screen shows to a file."""
