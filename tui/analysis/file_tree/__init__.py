"""A tree with totals out of a hundred thousand file paths, and its visible rows.

Pure functions that never block for long: anything that grows with the number of files is a generator that
pauses every few hundred of them, so the caller can repaint in between. ``finish`` runs one to completion.
Nothing is recursive, however deep a path.
"""
