"""Home: the projects and jobs of a remote."""
