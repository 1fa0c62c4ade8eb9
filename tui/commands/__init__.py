"""Commands that need no dashboard. No module here imports textual at module level."""
