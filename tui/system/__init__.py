"""The machine around the dashboard: keyboard, processes, external programs, saved files."""
