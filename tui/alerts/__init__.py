"""Alerts for users who are not watching the dashboard: which findings are new, their text, their delivery."""
