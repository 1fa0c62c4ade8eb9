"""A run in four kilobytes, for somebody, or a program, who decides what to do with it."""
