"""Explain a finding or a failed job: the lines and figures that it comes from."""
