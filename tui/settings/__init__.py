"""The settings: one TOML file, environment variables and flags. Only ``checked`` is cheap to import."""
