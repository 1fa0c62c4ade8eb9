"""Run Baseten Training on one machine, behind the same REST API.

The client never imports this package. The two share only ``api_client.models``.
"""
