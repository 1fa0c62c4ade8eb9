"""Live streams of a job: logs without loss, metrics and status, built on plain awaitable reads."""
