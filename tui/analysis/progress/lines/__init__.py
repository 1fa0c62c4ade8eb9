"""Read progress from log lines, whichever trainer printed them; ``reader.parse`` is the way in.

``values`` finds named numbers, ``vocabulary`` knows what the names mean, ``counts`` finds steps and epochs,
``kinds`` tells reports from prose; ``text``, ``alone``, ``tables``, ``bars`` and ``structured`` read a line.
Nothing is imported here: the settings need only the user's own patterns, not a hundred regular expressions.
"""
