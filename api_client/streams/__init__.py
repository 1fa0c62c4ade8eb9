"""Live streams of a job: logs without loss, metrics, status. They are built on plain awaitable reads."""
