"""One module a noun of the REST API: each call builds a request, sends it, and parses the answer."""
