"""Pure functions over what the API answered: no I/O, no textual."""
