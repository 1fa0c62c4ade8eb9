"""Submit a job: archive, overrides, team selection, and the API calls in order."""
