"""The settings: one TOML file, environment variables and flags. ``places`` alone is cheap to import."""
