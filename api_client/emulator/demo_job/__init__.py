"""A small but real distributed training job: a classifier of handwritten digits, with averaged gradients.

``train.py`` runs as a script, one process per node, and needs only the standard library.
"""
