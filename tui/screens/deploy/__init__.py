"""The deploy wizard, from checkpoints to a served model: steps, review, and the deployment's progress."""
