"""Parse log lines of any trainer: split off the numbers, assign meanings, and accept those of a training.

``Reader`` is the entry point. ``line`` splits a line into texts and numbers, ``naming`` gives each number a
name and a meaning from ``vocabulary``, ``decide`` makes a ``template`` of them, which reads all lines with
the same texts, and ``evidence`` decides whether a training printed a line or somebody quotes it. ``tables``,
``saves`` and ``custom`` (the user's patterns) parse other lines.
"""
