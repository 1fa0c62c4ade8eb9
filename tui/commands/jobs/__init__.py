"""Commands on projects and jobs: list, show, push, stop, compare, wait, and the cache of a project."""
