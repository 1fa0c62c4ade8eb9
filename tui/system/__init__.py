"""Access to the machine: keyboard, processes, external programs, saved files."""
