"""Submit a job: archive, overrides, choice of the team, and the API calls in order."""
