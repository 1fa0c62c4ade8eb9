"""Columns of the tables that the dashboard and the commands share, each declared once."""
