"""The command that deploys checkpoints."""
