"""The log view: all lines are kept cheaply, and only the visible ones are laid out and styled."""
