"""The job screen: one run, live."""
