"""Shared parts of the commands: options, the session with a remote, output, tables, errors, completion."""
