"""What coding agents use: the commands as tools of the Model Context Protocol."""
