"""The list of downloads, and where they go."""
