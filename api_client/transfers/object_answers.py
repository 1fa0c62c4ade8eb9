"""Interpret an object store's answers: their headers, digests, errors, and connections that broke."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
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
    details = f"{status}" + (f" {code}" if code else "") + (f": {words}" if words else "")
    return kind(
        f"{url.netloc} answered {details}",
        status=status,
        code=code,
        server_message=words,
        retry_after_s=parse_retry_after(headers.get("retry-after"), date=headers.get("date"), now=now),
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
_DIGEST_BYTES = {"sha256": 32, "md5": 16}
_MD5_TAG = re.compile(r'"([0-9a-f]{32})"', re.ASCII)


def digest_in(headers: Message, *, is_whole: bool) -> str:
    """Return a digest of the whole object, like ``sha256:0f…``; empty if the store sends none.

    ``is_whole`` is True if the body is the whole object: Amazon's checksum and Content-MD5 may cover only the
    part that was requested, Google's hash never does.
    """
    google = dict(item.strip().partition("=")[::2] for item in headers.get("x-goog-hash", "").split(","))
    found = [("md5", google.get("md5", ""))]
    if is_whole:
        # A checksum of checksums ends with the number of parts: it is not base64 and cannot be verified.
        found += [
            ("sha256", headers.get("x-amz-checksum-sha256", "")),
            ("md5", headers.get("content-md5", "")),
        ]
    for algorithm, text in found:
        with suppress(binascii.Error, ValueError):
            raw = base64.b64decode(text.strip(), validate=True)
            if len(raw) == _DIGEST_BYTES[algorithm]:
                return f"{algorithm}:{raw.hex()}"
    tag = _MD5_TAG.fullmatch(headers.get("etag", "").strip())
    return f"md5:{tag[1]}" if tag and _tags_are_md5(headers) else ""


def digest_of(descriptor: int, algorithm: str, is_off: Callable[[], bool]) -> str:
    """Compute the digest of an open file in chunks; empty once ``is_off`` returns True."""
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    offset = 0
    while chunk := os.pread(descriptor, DIGEST_CHUNK_BYTES, offset):
        if is_off():
            return ""
        offset += len(chunk)
        hasher.update(chunk)
    return f"{algorithm}:{hasher.hexdigest()}"


def is_digest(text: str) -> bool:
    """Return True if the text is a digest that ``digest_of`` can compute."""
    algorithm, _, value = text.partition(":")
    return len(value) == 2 * _DIGEST_BYTES.get(algorithm, -1)


def _tags_are_md5(headers: Message) -> bool:
    """Return True if this store's 32-digit entity tags are MD5 sums.

    S3's are, except for objects encrypted with KMS or customer keys; other servers may use anything.
    """
    is_s3 = "x-amz-request-id" in headers or "x-amz-id-2" in headers
    encryption = headers.get("x-amz-server-side-encryption", "").lower()
    has_own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    return is_s3 and "kms" not in encryption and not has_own_key
