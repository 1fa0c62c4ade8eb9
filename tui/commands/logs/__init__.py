"""The command that prints and follows logs."""
