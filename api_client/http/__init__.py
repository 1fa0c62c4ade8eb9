"""The only package that sends API requests: connections, authentication, retries, decoding and errors."""
