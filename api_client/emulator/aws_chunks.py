"""The ``aws-chunked`` body that S3 clients send when they sign or checksum as they stream."""

from __future__ import annotations

from starlette.datastructures import Headers

MAXIMUM_HEADER_BYTES = 4096


def is_aws_chunked(headers: Headers) -> bool:
    """Whether the body is wrapped in chunks of its own."""
    encoding = headers.get("content-encoding", "").lower()
    return "aws-chunked" in encoding or headers.get("x-amz-content-sha256", "").startswith("STREAMING-")


class MalformedChunks(Exception):
    """The body is not what its header says."""


class ChunkedDecoder:
    """Takes the wrapping off, piece by piece.

    The body is ``<hex size>[;signature]``, line break, that many bytes, line break, and so on; a chunk of
    size zero ends it, and trailers may follow.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._left_in_chunk = 0
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes:
        """The content in these bytes; raises ``MalformedChunks``."""
        self._pending += data
        content = bytearray()
        while self._pending and not self._in_trailers:
            if self._left_in_chunk == 0:
                if not self._read_size():
                    break
                continue
            taken = self._pending[: self._left_in_chunk]
            content += taken
            del self._pending[: len(taken)]
            self._left_in_chunk -= len(taken)
        return bytes(content)

    def finish(self) -> None:
        """The body has ended; raises ``MalformedChunks`` if that was too early."""
        if not self._in_trailers:
            raise MalformedChunks("the body ends before its last chunk")

    def _read_size(self) -> bool:
        # A chunk's closing line break is still ahead of the next size.
        if self._pending.startswith(b"\r\n"):
            del self._pending[:2]
        line, found, _ = self._pending.partition(b"\r\n")
        if not found:
            if len(self._pending) > MAXIMUM_HEADER_BYTES:
                raise MalformedChunks("a chunk has no size")
            return False
        try:
            self._left_in_chunk = int(line.split(b";")[0], 16)
        except ValueError as error:
            raise MalformedChunks("a chunk's size is not a number") from error
        if self._left_in_chunk < 0:
            raise MalformedChunks("a chunk's size is negative")
        del self._pending[: len(line) + 2]
        self._in_trailers = self._left_in_chunk == 0
        return True
