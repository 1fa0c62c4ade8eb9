"""Recognize levels, errors, tracebacks, progress bars and JSON in log lines. Cheap for ordinary lines."""
