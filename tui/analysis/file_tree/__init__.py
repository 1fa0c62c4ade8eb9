"""A tree of files with the totals of its directories, and its visible rows.

Pure functions. A hundred thousand files take up to a second, so callers run them in a thread. No function is
recursive, because a path may be deeper than Python's recursion limit.
"""
