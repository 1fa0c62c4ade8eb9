"""Checkpoints: their facts, comparison, and files."""
