"""The charts that the job screen and the compare screen show."""
