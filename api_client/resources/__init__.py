"""Resources of the REST API, one module per noun.

Each call builds a request, sends it and parses the answer.
"""
