"""Upload archives: request credentials, then upload with them."""

from __future__ import annotations

from pathlib import Path

import httpx
from pydantic import TypeAdapter

from api_client.addresses import Destinations, route
from api_client.clock import Clock, SystemClock
from api_client.http.transport import Transport
from api_client.models import BlobCredentials
from api_client.transfers.object_store import OnNote
from api_client.transfers.uploads import OnBytes, upload_file

_CREDENTIALS = TypeAdapter(BlobCredentials)


class Blobs:
    """Upload credentials, and uploads with them."""

    def __init__(
        self,
        transport: Transport,
        destinations: Destinations,
        clock: Clock | None = None,
        http_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport = transport
        self._destinations = destinations
        self._clock = clock or SystemClock()
        self._http_transport = http_transport

    async def training_credentials(self) -> BlobCredentials:
        """Return temporary credentials for one code archive, with a new key. Raises RequestError."""
        return await self._transport.request("GET", route("blobs", "credentials", "train"), _CREDENTIALS)

    async def upload(
        self,
        path: Path,
        credentials: BlobCredentials,
        *,
        on_progress: OnBytes | None = None,
        on_note: OnNote | None = None,
    ) -> None:
        """Upload a file to the object that the credentials are for; the platform's key is not sent there.

        ``on_progress`` is called with bytes sent and in total, ``on_note`` with a text for every wait.
        Raises UploadFailed, ReadOnlyError, and ConfigurationError for an unusable endpoint.
        """
        self._transport.check_may_change("uploading an archive", method="PUT")
        await upload_file(
            path,
            credentials,
            destinations=self._destinations,
            clock=self._clock,
            on_progress=on_progress,
            on_note=on_note,
            http_transport=self._http_transport,
        )
