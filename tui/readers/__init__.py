"""Reads shared by feeds and commands, and the session of the dashboard."""
