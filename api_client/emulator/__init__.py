"""Baseten Training on one machine, behind the same REST API.

Nothing of the client imports this package; it shares ``api_client.models`` with the client and no more.
"""
