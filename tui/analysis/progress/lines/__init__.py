"""Parse log lines of any trainer: split off the numbers, assign meanings, and accept those of a training.

``Reader`` is the entry point. ``line`` splits a line, ``template`` assigns meanings to its numbers from
``vocabulary``, and ``evidence`` decides whether a training printed it or somebody quotes it. ``tables``,
``saves`` and ``custom`` (the user's patterns) parse other lines.
"""
