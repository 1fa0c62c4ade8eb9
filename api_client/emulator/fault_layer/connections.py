"""The connections under the requests, for faults that strike below HTTP."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

LINGER_NOT_AT_ALL = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing sends a reset, not an end."""

FLUSH_POLL_S = 0.005


class Connections:
    """The open connections of a server, by the address of their other end (``scope["client"]``)."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], asyncio.Transport] = {}

    def protocol(self) -> type[H11Protocol]:
        """What uvicorn must serve with (``Config(http=…)``) for the connections to be known here."""
        registry = self._open

        class Kept(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if self.client is not None:
                    registry[self.client] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                # A port that was free again may be another connection's by now.
                if self.client is not None and registry.get(self.client) is self.transport:
                    del registry[self.client]
                super().connection_lost(exc)

        return Kept

    def reset(self, client: Any) -> None:
        """Reset the connection from there, at once; what was not sent yet is lost."""
        transport = self._open.get(tuple(client or ()))
        if transport is not None:
            _reset(transport)

    def reset_all(self) -> None:
        """Reset every connection, as a server does that dies."""
        for transport in list(self._open.values()):
            _reset(transport)

    def close(self, client: Any) -> None:
        """Close the connection from there in good order, whatever was promised on it."""
        transport = self._open.get(tuple(client or ()))
        if transport is not None:
            transport.close()

    async def flushed(self, client: Any) -> None:
        """Wait until all that was written to the connection from there has left."""
        transport = self._open.get(tuple(client or ()))
        if transport is None:
            return
        # Transports tell nobody when they are empty.
        while not transport.is_closing() and transport.get_write_buffer_size():  # noqa: ASYNC110
            await asyncio.sleep(FLUSH_POLL_S)


def _reset(transport: asyncio.Transport) -> None:
    own = transport.get_extra_info("socket")
    if own is not None and not transport.is_closing():
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT_AT_ALL)
    transport.abort()
