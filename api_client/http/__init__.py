"""One place that sends: addresses, connection, auth, retries, decoding, errors in plain words."""
