"""Pure functions over API responses: no I/O, no Textual."""
