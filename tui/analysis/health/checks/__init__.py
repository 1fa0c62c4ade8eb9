"""One module per check; each has a ``CHECK``. The registry finds them by themselves."""
