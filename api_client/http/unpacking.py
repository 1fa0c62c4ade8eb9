"""Unpack the bodies of answers, so that no more than a limit is ever in memory, however well it is packed.

httpx would unpack every layer of every encoding that it knows in one step, before anybody can count the
bytes. Here a body is either packed once, with gzip, or not at all.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

ACCEPT_ENCODING = "gzip"
MAX_BYTES = "api_client.max_bytes"
"""Request extension with the maximum size of the answer's body, in bytes."""

_PIECE_BYTES = 1024 * 1024


class BodyTooLarge(httpx.DecodingError):
    """The body has more bytes than the request accepts."""


class UnpackingTransport(httpx.AsyncBaseTransport):
    """Sends requests through another transport, and unpacks the bodies of the answers.

    Reading a body raises BodyTooLarge if it is larger than the request's extension ``MAX_BYTES``, and
    DecodingError if it is damaged or packed otherwise.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        encoding = response.headers.pop("content-encoding", "").strip().lower() or "identity"
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_Body(response.stream, encoding, request.extensions[MAX_BYTES]),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, packed: httpx.AsyncByteStream, encoding: str, max_bytes: int) -> None:
        self._packed = packed
        self._encoding = encoding
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding not in ("identity", ACCEPT_ENCODING):
            raise httpx.DecodingError(f"sent the content encoding {self._encoding!r}, which is not supported")
        gzip = zlib.decompressobj(16 + zlib.MAX_WBITS) if self._encoding == ACCEPT_ENCODING else None
        received_bytes = unpacked_bytes = 0
        async for packed in self._packed:
            received_bytes += len(packed)
            for piece in (packed,) if gzip is None else _unpacked(packed, gzip):
                unpacked_bytes += len(piece)
                self._check(unpacked_bytes)
                yield piece
                await asyncio.sleep(0)  # a piece takes time, and there may be many
            self._check(received_bytes)
        if gzip is not None and received_bytes and not gzip.eof:
            raise httpx.DecodingError("sent a response that can't be decompressed: it is cut off")

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self._max_bytes:
            raise BodyTooLarge(f"returned over {self._max_bytes:,} bytes")

    async def aclose(self) -> None:
        await self._packed.aclose()


def _unpacked(packed: bytes, gzip: Any) -> Iterator[bytes]:
    """Yield what ``packed`` unpacks to, in pieces that do not block the event loop for long."""
    while not gzip.eof:
        try:
            piece = gzip.decompress(packed, _PIECE_BYTES)
        except zlib.error:
            raise httpx.DecodingError("sent a response that can't be decompressed") from None
        yield piece
        packed = gzip.unconsumed_tail
        if not packed and len(piece) < _PIECE_BYTES:
            return
