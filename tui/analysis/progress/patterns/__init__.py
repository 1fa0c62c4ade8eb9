"""Formats in which trainers print progress: one module per family of lines, tried in turn.

A family module has ``read(text) -> Reading | None``; ``parse.parse`` calls them all. Nothing is imported
here, because the settings need only the user's own patterns, not a hundred regular expressions.
"""
