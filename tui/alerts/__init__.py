"""Alerts for users who do not see the dashboard: which findings are new, their text and delivery."""
