"""Code that reads data from a server, shared by feeds and commands; and the dashboard's session."""
