"""What commands share: options, the session with a remote, output, tables, errors, completion."""
