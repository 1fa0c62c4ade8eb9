"""What is inside a checkpoint."""
