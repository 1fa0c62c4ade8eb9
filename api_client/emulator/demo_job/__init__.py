"""A small but real distributed training job: an MLP on handwritten digits, with averaged gradients.

It runs as ``python <this folder>``, one process per node, and needs only the standard library. Its
modules use relative imports because they are loaded without the parent packages.
"""
