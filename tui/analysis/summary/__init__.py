"""A summary of a run in four kilobytes, for users and programs that decide what to do with the run."""
