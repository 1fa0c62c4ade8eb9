"""Checkpoints: what is told of them, two of them compared, their files."""
