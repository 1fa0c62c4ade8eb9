"""The settings: one TOML file, environment variables and flags. Only ``places`` is cheap to import."""
