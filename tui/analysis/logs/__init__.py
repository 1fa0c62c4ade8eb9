"""Recognize levels, errors, tracebacks, progress bars and JSON in log lines; fast for ordinary lines."""
