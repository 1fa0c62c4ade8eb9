"""GPUs: limits, use and queue."""
