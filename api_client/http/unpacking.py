"""Decompress the bodies of responses while counting bytes, so that a compression bomb cannot fill the memory.

httpx would decompress all encodings of a body in one step, before the bytes can be counted. This transport
accepts only bodies that are compressed once, with gzip, or not at all.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

ACCEPT_ENCODING = "gzip"
MAX_BYTES = "api_client.max_bytes"
"""Request extension with the maximum size of the response's body, in bytes."""

_MAX_CHUNK_BYTES = 1024 * 1024


class BodyTooLarge(httpx.DecodingError):
    """The body has more bytes than the request accepts."""


class UnpackingTransport(httpx.AsyncBaseTransport):
    """Sends requests through another transport, and decompresses the bodies of the responses.

    Reading a body raises BodyTooLarge if it is larger than the request's extension ``MAX_BYTES``, and
    DecodingError if it is damaged or has another encoding than gzip.
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
            stream=_DecompressedBody(response.stream, encoding, request.extensions[MAX_BYTES]),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _DecompressedBody(httpx.AsyncByteStream):
    def __init__(self, compressed: httpx.AsyncByteStream, encoding: str, max_bytes: int) -> None:
        self._compressed = compressed
        self._encoding = encoding
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding not in ("identity", ACCEPT_ENCODING):
            raise httpx.DecodingError(f"sent the content encoding {self._encoding!r}, which is not supported")
        gzip = zlib.decompressobj(16 + zlib.MAX_WBITS) if self._encoding == ACCEPT_ENCODING else None
        received_bytes = decompressed_bytes = 0
        async for compressed in self._compressed:
            received_bytes += len(compressed)
            for chunk in (compressed,) if gzip is None else _decompress(compressed, gzip):
                decompressed_bytes += len(chunk)
                self._check_size(decompressed_bytes)
                yield chunk
                await asyncio.sleep(0)  # let other tasks run between chunks
            self._check_size(received_bytes)
        if gzip is not None and received_bytes and not gzip.eof:
            raise httpx.DecodingError("sent a response that can't be decompressed: it is cut off")

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes > self._max_bytes:
            raise BodyTooLarge(f"returned over {self._max_bytes:,} bytes")

    async def aclose(self) -> None:
        await self._compressed.aclose()


def _decompress(compressed: bytes, gzip: Any) -> Iterator[bytes]:
    """Yield the decompressed bytes, in chunks that do not block the event loop for long."""
    while not gzip.eof:
        try:
            chunk = gzip.decompress(compressed, _MAX_CHUNK_BYTES)
        except zlib.error:
            raise httpx.DecodingError("sent a response that can't be decompressed") from None
        yield chunk
        compressed = gzip.unconsumed_tail
        if not compressed and len(chunk) < _MAX_CHUNK_BYTES:
            return
