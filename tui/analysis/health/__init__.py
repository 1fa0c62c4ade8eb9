"""Detect problems of a run. Each finding has a reason, a start time, and a node; a healthy run has none.

Each check is in a module of ``checks``. All are pure: the same snapshot, rules, and earlier findings give the
same result.
"""
