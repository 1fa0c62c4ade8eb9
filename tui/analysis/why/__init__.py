"""Explain a finding or a failed job by its cause, log lines and charts."""
