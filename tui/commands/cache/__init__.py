"""Commands on a project's cache."""
