"""Commands on projects and jobs: list, show, push, stop, compare, wait."""
