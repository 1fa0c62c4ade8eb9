"""A summary of a run in at most four kilobytes, for users and programs that decide about the run."""
