"""Answer requests for bytes from memory or disk, whole or as a single byte range, with an entity tag."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api_client.emulator.answers import xml_fault

_SINGLE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class UnsatisfiableRange(Exception):
    pass


def parse_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """Parse ``Range`` into ``(start, end)``, end exclusive; return None to send the whole content.

    None means that there is no header or that its form is not supported. Raises ``UnsatisfiableRange`` if
    no byte of the content is in the range (RFC 9110, 14.1.2).
    """
    match = _SINGLE_RANGE.fullmatch((header or "").strip())
    if match is None or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    if last and first and int(last) < int(first):
        return None
    start = int(first) if first else max(0, size_bytes - int(last))
    end = min(size_bytes, int(last) + 1) if first and last else size_bytes
    if start >= size_bytes or start >= end:
        raise UnsatisfiableRange
    return start, end


CHUNK_BYTES = 1024 * 1024
SINGLE_PART_BYTES = 8 * 1024 * 1024
"""Largest object whose entity tag is its MD5, as for single-part uploads to S3.

Larger objects get a tag like multipart uploads, which is not a digest of the content.
"""

MEDIA_TYPE = "application/octet-stream"

ReadBytes = Callable[[int, int], bytes]
"""Returns the bytes from ``start`` to ``end`` (exclusive)."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """An object's content: size, a function to read it, entity tag (without quotes), modification time."""

    size_bytes: int
    read: ReadBytes
    etag: str
    modified: datetime | None = None


def answer_bytes(request: Request, content: StoredBytes) -> Response:
    """Return the whole object or the requested range; for several ranges the whole object, as S3 does."""
    size = content.size_bytes
    headers = {"Accept-Ranges": "bytes", "ETag": f'"{content.etag}"'}
    if content.modified is not None:
        headers["Last-Modified"] = format_datetime(content.modified.astimezone(UTC), usegmt=True)
    try:
        requested = request.headers.get("range") if _range_holds(request, content) else None
        span = parse_range(requested, size)
    except UnsatisfiableRange:
        headers["Content-Range"] = f"bytes */{size}"
        return xml_fault(416, "InvalidRange", "The requested range is not satisfiable", headers=headers)
    start, end = span or (0, size)
    headers["Content-Length"] = str(end - start)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 200 if span is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=MEDIA_TYPE)
    return StreamingResponse(
        _chunks(content.read, start, end), status_code=status, headers=headers, media_type=MEDIA_TYPE
    )


def _range_holds(request: Request, content: StoredBytes) -> bool:
    """Return True if the object is still the one that ``If-Range`` names (RFC 9110, 13.1.5)."""
    condition = request.headers.get("if-range")
    if condition is None:
        return True
    if condition.startswith('"'):
        return condition == f'"{content.etag}"'
    try:
        moment = parsedate_to_datetime(condition)
    except ValueError:
        return False
    return content.modified is not None and moment == content.modified.replace(microsecond=0)


async def _chunks(read: ReadBytes, start: int, end: int) -> AsyncIterator[bytes]:
    for offset in range(start, end, CHUNK_BYTES):
        chunk = await run_in_threadpool(read, offset, min(end, offset + CHUNK_BYTES))
        if not chunk:
            # The file was truncated: end early, which breaks the connection because the length was announced.
            return
        yield chunk


def bytes_of_file(path: Path) -> StoredBytes:
    """Return the content of a file on disk; raise OSError if it cannot be read."""
    status = path.stat()

    def read(start: int, end: int) -> bytes:
        with path.open("rb", buffering=0) as file:
            return os.pread(file.fileno(), end - start, start)

    return StoredBytes(
        size_bytes=status.st_size,
        read=read,
        etag=_tag_of_file(path, status.st_size, status.st_mtime_ns),
        modified=datetime.fromtimestamp(int(status.st_mtime), UTC),
    )


@lru_cache(maxsize=4096)
def _tag_of_file(path: Path, size_bytes: int, modified_ns: int) -> str:
    if size_bytes <= SINGLE_PART_BYTES:
        return tag_of_content(path.read_bytes())
    return tag_of_parts(f"{path}:{size_bytes}:{modified_ns}", size_bytes)


def tag_of_parts(identity: str, size_bytes: int) -> str:
    """Return the tag of a large object: it depends on ``identity`` and ends with the number of parts."""
    return (
        f"{tag_of_content(identity.encode(errors='surrogateescape'))}-{-(-size_bytes // SINGLE_PART_BYTES)}"
    )


def tag_of_content(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
