"""A relay on loopback through which obstore reaches checked addresses only.

obstore resolves names itself, would connect to wherever they lead, and has its own idea of the environment's
proxies. Here connections are made as for downloads. TLS stays between obstore and the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import httpx

from api_client.addresses import BaseUrl, Destinations
from api_client.errors import RequestError
from api_client.transfers.connections import open_socket

CHUNK_BYTES = 64 * 1024


class Tunnel:
    """Listens on ``url``, and connects whoever asks to ``endpoint``.

    For https it is an HTTP proxy (CONNECT), for http it relays every byte. ``on_sent`` is called with the
    number of bytes sent to the store.
    """

    def __init__(
        self, endpoint: BaseUrl, destinations: Destinations, on_sent: Callable[[int], object]
    ) -> None:
        self._endpoint = endpoint
        self._destinations = destinations
        self._on_sent = on_sent
        self._relays: set[asyncio.Task[None]] = set()
        self.host = self.url = ""

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{self.host}:{port}"

    async def aclose(self) -> None:
        """Close all connections."""
        self._server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        endpoint = self._endpoint
        connected = await asyncio.to_thread(
            open_socket, self._destinations, endpoint.scheme, endpoint.host, endpoint.port
        )
        connected.setblocking(False)
        return await asyncio.open_connection(sock=connected, limit=CHUNK_BYTES)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, httpx.TransportError, RequestError):
                if self._endpoint.scheme == "https":
                    await reader.readuntil(b"\r\n\r\n")
                answers, upstream = await self._connect()
                if self._endpoint.scheme == "https":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, upstream, self._on_sent))
                    group.create_task(_copy(answers, writer, lambda _size_bytes: None))
        finally:
            for each in (writer, upstream):
                if each is not None:
                    each.close()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_copied: Callable[[int], object]
) -> None:
    """Copy until the end, then end the other side's stream, too."""
    with suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
            on_copied(len(chunk))
    writer.close()
