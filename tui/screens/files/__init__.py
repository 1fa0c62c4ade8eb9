"""The files of a checkpoint, and the comparison of two checkpoints."""
