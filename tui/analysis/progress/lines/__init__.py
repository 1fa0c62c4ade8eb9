"""Read log lines of any trainer: texts and numbers, what they mean, and whether they are believed.

``Reader`` is the entrance. ``line`` splits a line, ``template`` decides what its numbers mean by
``vocabulary``, ``belief`` whether a training printed it or somebody quotes it; ``tables``, ``saves`` and the
user's own patterns are beside them.
"""
