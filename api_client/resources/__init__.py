"""The methods of the REST API, one module per noun. Each sends a request and returns the parsed response."""

from __future__ import annotations

from api_client.http.transport import Transport


class Resource:
    """Requests about one noun. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
