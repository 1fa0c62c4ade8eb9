"""Screens of the dashboard: each with its stylesheet and the widgets that only it uses."""
