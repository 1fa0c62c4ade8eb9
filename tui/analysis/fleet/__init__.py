"""All jobs of a remote: rows, filter, order, teams, batches, capacity."""
