"""Detect problems of a run. Each finding has a reason, a start time, and a node; a healthy run has none.

There is one module per kind of problem. All checks are pure: the same snapshot, rules, and earlier
findings give the same result.
"""
