"""Detect problems of a run. Each finding has a reason, a start time, and a node; a healthy run has none.

Each check is a module in ``checks``. All are pure: the same snapshot, rules, and earlier findings give the
same result.
"""
