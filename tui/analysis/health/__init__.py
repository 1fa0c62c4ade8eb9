"""Detect problems of a run. A healthy run has no findings.

The modules of ``checks`` define the checks, which are pure: the same snapshot, rules, and previous findings
give the same result.
"""
