"""What trainers print about their progress: one module for each family of lines, tried in turn.

A family module offers ``read(text) -> Reading | None``; ``parse.parse`` asks them all. Nothing is loaded
here: the settings know a user's own patterns, and need not know a hundred expressions.
"""
