"""The log view: all lines kept cheaply, only the visible ones laid out and styled."""
