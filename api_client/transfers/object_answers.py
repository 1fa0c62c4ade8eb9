"""Interpret an object store's answers: their headers, digests, errors, and connections that broke."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from email.message import Message
from html import unescape
from http import HTTPStatus

import httpx

from api_client.errors import (
    BadRequest,
    ErrorAnswer,
    InvalidAnswer,
    RateLimited,
    RequestError,
    ServerFault,
    UrlExpired,
)
from api_client.http.failures import RequestLine, clean, from_exception
from api_client.http.retry import parse_retry_after
from api_client.remotes import Remote
from api_client.transfers.connections import ObjectUrl

_CONTENT_RANGE = re.compile(r"bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)
_UNSATISFIED = re.compile(r"bytes\s+\*/(\d{1,18})", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """Headers of an answer: the body's bytes begin at ``start`` of an object of ``total_bytes``.

    ``length`` and ``total_bytes`` are None if the server does not send them; ``is_partial`` distinguishes
    a range from the whole object. ``version`` changes with the object: its ETag, else its modification
    time. ``digest`` is that of the whole object, like ``sha256:0f…``. Both are empty if unknown.
    """

    start: int
    length: int | None
    total_bytes: int | None
    is_partial: bool
    version: str = ""
    content_type: str = ""
    digest: str = ""


def read_head(status: int, headers: Message) -> ObjectHead | None:
    """Parse the headers of a successful answer; None if they contradict each other."""
    length = content_length(headers)
    start, span, total = 0, length, length
    is_partial = status == HTTPStatus.PARTIAL_CONTENT
    if is_partial:
        found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
        if found is None:
            return None
        start, last = int(found[1]), int(found[2])
        total = None if found[3] == "*" else int(found[3])
        span = last - start + 1
        if last < start or length not in (None, span) or (total is not None and last >= total):
            return None
    return ObjectHead(
        start=start,
        length=span,
        total_bytes=total,
        is_partial=is_partial,
        version=(headers.get("etag") or headers.get("last-modified") or "").strip(),
        content_type=headers.get("content-type", "").strip().lower(),
        digest=digest_in(headers, is_whole=not is_partial or (start == 0 and span == total)),
    )


def content_length(headers: Message) -> int | None:
    text = headers.get("content-length", "").strip()
    return int(text) if _LENGTH.fullmatch(text) else None


_EXPIRED_URL_STATUSES = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.GONE,
    }
)
"""Stores answer an expired signature with 403, expired credentials with 400, some with 401 or 404."""

_TEMPORARY_CODES = frozenset({"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"})


class RangeOutside(InvalidAnswer):
    """The range lies outside the object, which has ``total_bytes`` (None: unknown)."""

    total_bytes: int | None = None


def range_outside(headers: Message, url: ObjectUrl, start: int) -> RangeOutside:
    error = RangeOutside(f"{url.netloc} has no byte {start:,} of this file", method="GET")
    found = _UNSATISFIED.fullmatch(headers.get("content-range", "").strip())
    error.total_bytes = int(found[1]) if found else None
    return error


def from_answer(status: int, headers: Message, content: bytes, url: ObjectUrl, now: datetime) -> ErrorAnswer:
    code, words = _server_message(content, url)
    kind: type[ErrorAnswer] = BadRequest
    if code in _TEMPORARY_CODES or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = ServerFault
    elif status in _EXPIRED_URL_STATUSES:
        kind = UrlExpired
    elif status == HTTPStatus.REQUEST_TIMEOUT:
        kind = ServerFault
    elif status == HTTPStatus.TOO_MANY_REQUESTS:
        kind = RateLimited
    said = f"{status}" + (f" {code}" if code else "") + (f": {words}" if words else "")
    return kind(
        f"{url.netloc} answered {said}",
        status=status,
        code=code,
        server_message=words,
        retry_after_s=parse_retry_after(headers.get("retry-after"), now=now),
        method="GET",
        path=url.path,
    )


def from_break(error: Exception, url: ObjectUrl) -> RequestError:
    """Build the error for a connection that failed (TransportError) or broke (any other)."""
    alike = error
    if isinstance(error, TimeoutError):
        alike = httpx.ReadTimeout("")
    elif not isinstance(error, httpx.TransportError):
        alike = httpx.ReadError("the body ended early")
        alike.__cause__ = error
    return from_exception(alike, _keyless_remote(url), url.netloc, RequestLine("GET", url.path)).error


def element(text: str, name: str) -> str | None:
    """Return the text of the first XML element with that name; stores' errors are too simple for a parser."""
    found = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return unescape(found[1]).strip() or None if found else None


def _keyless_remote(url: ObjectUrl) -> Remote:
    return Remote("object store", url.netloc, url.netloc, key=None, key_origin="")


def _server_message(content: bytes, url: ObjectUrl) -> tuple[str | None, str | None]:
    """Return the store's code and message; other XML elements may quote the signature."""
    text = content.decode("utf-8", errors="replace")
    code, words = element(text, "Code"), element(text, "Message")
    if code is None and words is None:
        words = "HTML" if "<" in text else text
    found = tuple(
        clean(url.without_secrets(part), _keyless_remote(url)) or None if part else None
        for part in (code, words)
    )
    return found[0], found[1]


DIGEST_CHUNK_BYTES = 1024 * 1024

_STRONGEST_FIRST = {"sha512": 64, "sha256": 32, "sha1": 20, "md5": 16, "crc32": 4}
"""Digests that the standard library can compute, and their sizes in bytes."""

_NAMES = {"md5": "md5", "sha": "sha1", "sha-1": "sha1", "sha-256": "sha256", "sha-512": "sha512"}
_MD5_TAG = re.compile(r'"([0-9a-f]{32})"', re.ASCII)


def digest_in(headers: Message, *, is_whole: bool) -> str:
    """Return the strongest digest of the whole object, like ``sha256:0f…``; empty if there is none.

    ``is_whole`` is True if the body is the whole object.
    """
    found = dict(_digests(headers, is_whole))
    return next(
        (f"{algorithm}:{found[algorithm]}" for algorithm in _STRONGEST_FIRST if algorithm in found), ""
    )


def digest_of(descriptor: int, algorithm: str, is_off: Callable[[], bool]) -> str:
    """Compute the digest of an open file in chunks; empty once ``is_off`` returns True."""
    hasher = None if algorithm == "crc32" else hashlib.new(algorithm, usedforsecurity=False)
    checksum = offset = 0
    while chunk := os.pread(descriptor, DIGEST_CHUNK_BYTES, offset):
        if is_off():
            return ""
        offset += len(chunk)
        if hasher is None:
            checksum = zlib.crc32(chunk, checksum)
        else:
            hasher.update(chunk)
    return f"{algorithm}:{checksum:08x}" if hasher is None else f"{algorithm}:{hasher.hexdigest()}"


def is_digest(text: str) -> bool:
    """Return True if the text is a digest that ``digest_of`` can compute."""
    algorithm, _, value = text.partition(":")
    return len(value) == 2 * _STRONGEST_FIRST.get(algorithm, -1)


def _digests(headers: Message, is_whole: bool) -> Iterator[tuple[str, str]]:
    """Yield algorithm and value of every digest that certainly covers the whole object.

    ``Digest`` and ``Repr-Digest`` cover it whatever part is sent (RFC 3230, RFC 9530), as does Google's
    ``x-goog-hash``. Amazon's checksums may cover a part, and Content-MD5 covers the body.
    """
    for name, value in _pairs(headers.get("digest", "") + "," + headers.get("repr-digest", "")):
        yield from _decoded(_NAMES.get(name.lower(), ""), value.strip(":"))
    for name, value in _pairs(headers.get("x-goog-hash", "")):
        yield from _decoded("md5" if name == "md5" else "", value)
    if is_whole:
        for algorithm in ("sha256", "sha1", "crc32"):
            # A checksum of checksums ends with the number of parts: it is not base64 and cannot be verified.
            yield from _decoded(algorithm, headers.get(f"x-amz-checksum-{algorithm}", ""))
        yield from _decoded("md5", headers.get("content-md5", ""))
    tag = _MD5_TAG.fullmatch(headers.get("etag", "").strip())
    if tag and _tags_are_md5(headers):
        yield "md5", tag[1]


def _tags_are_md5(headers: Message) -> bool:
    """Return True if this store's 32-digit entity tags are MD5 sums.

    S3's are, except for objects encrypted with KMS or customer keys; other servers may use anything.
    """
    is_s3 = "x-amz-request-id" in headers or "x-amz-id-2" in headers
    encryption = headers.get("x-amz-server-side-encryption", "").lower()
    has_own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    return is_s3 and "kms" not in encryption and not has_own_key


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for item in text.split(","):
        name, equals, value = item.strip().partition("=")
        if equals:
            yield name.strip(), value.strip()


def _decoded(algorithm: str, text: str) -> Iterator[tuple[str, str]]:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return
    if len(raw) == _STRONGEST_FIRST.get(algorithm):
        yield algorithm, raw.hex()
