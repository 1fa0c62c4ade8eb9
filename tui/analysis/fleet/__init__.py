"""The jobs of a remote: rows, filter, order, teams, batches, and capacity."""
