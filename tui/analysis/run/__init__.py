"""The state of one run: its snapshot, findings, verdict, checkpoints and wait in the queue."""
