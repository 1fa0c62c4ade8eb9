"""Ask before something that cannot be undone."""
