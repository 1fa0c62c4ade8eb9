"""A tree with totals out of a hundred thousand file paths, and its visible rows.

Pure functions. A hundred thousand files take up to a second, for a thread. Nothing is recursive, however deep
a path.
"""
