"""Read progress from log lines, whichever trainer printed them; ``reader.parse`` is the way in.

``values`` finds named numbers, ``vocabulary`` knows what the names mean, ``counts`` finds steps and epochs;
``text``, ``tables``, ``bars`` and ``structured`` decide what a line reports. Nothing is imported here:
the settings need only the user's own patterns, not a hundred regular expressions.
"""
