"""An emulator of Baseten Training: the same REST API, with the jobs on this machine.

The client never imports this package. The two share only ``api_client.models`` and the routes.
"""
