"""Commands on the checkpoints of a job."""
