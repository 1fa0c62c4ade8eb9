"""Where to upload."""

from __future__ import annotations

from pydantic import TypeAdapter

from api_client.addresses import route
from api_client.models import BlobCredentials
from api_client.transport import Transport

_CREDENTIALS = TypeAdapter(BlobCredentials)


class Blobs:
    """Upload credentials."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def training_credentials(self) -> BlobCredentials:
        """Temporary credentials for one archive of code; each call answers a new key. Raises RequestError."""
        return await self._transport.request("GET", route("blobs", "credentials", "train"), _CREDENTIALS)
