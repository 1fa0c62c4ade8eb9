"""The cockpit of one run."""
