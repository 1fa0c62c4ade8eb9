"""Read byte ranges of objects behind presigned URLs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from http import HTTPStatus
from random import Random

import httpcore
import httpx

from api_client.addresses import Destinations
from api_client.clock import Clock, SystemClock
from api_client.errors import (
    BadRequest,
    ErrorAnswer,
    InvalidAnswer,
    RateLimited,
    RedirectRefused,
    RequestError,
    ServerFault,
    Unreachable,
    UrlExpired,
)
from api_client.http.connection import CONNECT_TIMEOUT_S, user_agent
from api_client.http.failures import RequestLine, clean
from api_client.http.retry import RetryPolicy, parse_retry_after, retrying
from api_client.transfers import network
from api_client.transfers.network import (
    BREAKS,
    Network,
    ObjectUrl,
    from_break,
    keyless_remote,
    parse_object_url,
    redirected,
)

MAX_ERROR_BYTES = 65_536
MAX_REDIRECTS = 3
MAX_READ_BYTES = 256 * 1024 * 1024  # held in memory; the longest safetensors headers are tens of MB

_CONTENT_RANGE = re.compile(r"bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ObjectAnswer:
    """A store's answer: its headers, and the requested bytes in order."""

    head: ObjectHead
    pieces: AsyncIterator[bytes]


class Objects:
    """Reads objects. No key, cookie or other header of ours is sent to a URL's host.

    Redirects are followed (stores redirect between regions), but never from https to http.
    ``destinations`` decides which addresses may be connected to, by default only those of the public
    internet. Connects on the first read.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        retry: RetryPolicy | None = None,
        destinations: Destinations | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._retry = retry or RetryPolicy()
        self._random = Random()
        self._network = Network(destinations)
        self._is_closed = False

    async def read(self, url: str, *, start: int = 0, length: int) -> bytes:
        """Read ``length`` bytes from ``start``; fewer if the object ends earlier.

        Interrupted reads are retried. If a server ignores ranges, the object is read up to the last byte
        needed, and then the connection is closed. Raises UrlExpired if a fresh URL is needed, ValueError
        for a length over ``MAX_READ_BYTES``, and the other subclasses of RequestError.
        """
        if start < 0 or not 0 <= length <= MAX_READ_BYTES:
            raise ValueError(f"cannot read {length:,} bytes from byte {start:,} on")
        if not length:
            return b""

        async def read_once() -> bytes:
            content = bytearray()
            async with self.open(url, start=start, end=start + length) as answer:
                async for piece in answer.pieces:
                    content += piece
            return bytes(content)

        try:
            return await retrying(read_once, self._retry, sleep=self._clock.sleep, random=self._random)
        except RangeOutside:
            return b""

    @asynccontextmanager
    async def open(self, url: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[ObjectAnswer]:
        """Send one request for the bytes ``start`` … ``end`` (exclusive; None: to the object's end).

        Nothing is retried. Raises RequestError and its subclasses, also while the pieces are read.
        """
        if self._is_closed:
            raise RequestError("the client is closed", method="GET")
        current = parse_object_url(url)
        try:
            for _ in range(MAX_REDIRECTS + 1):
                async with await self._sent(current, start, end) as response:
                    if response.status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                        head = _read_head(response, current, start, end)
                        async with aclosing(_pieces(response, head, current, start, end)) as pieces:
                            yield ObjectAnswer(head, pieces)
                        return
                    if not HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
                        raise await self._refusal(response, current, start)
                    current = redirected(current, httpx.Headers(response.headers).get("location"))
        except BREAKS as error:
            problem = from_break(error, current, RequestLine("GET", current.path))
        else:
            problem = RedirectRefused(
                f"{current.netloc} redirected more than {MAX_REDIRECTS} times", method="GET"
            )
        raise problem

    async def _sent(
        self, url: ObjectUrl, start: int, end: int | None
    ) -> AbstractAsyncContextManager[httpcore.Response]:
        headers: dict[str | bytes, str | bytes] = {
            "Host": url.netloc,
            "User-Agent": user_agent(),
            "Accept": "*/*",
            # Compressed bytes would be counted, placed and verified as if they were the object's.
            "Accept-Encoding": "identity",
        }
        if start or end is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        timeout = dict.fromkeys(("read", "write"), network.READ_TIMEOUT_S) | {"connect": CONNECT_TIMEOUT_S}
        pool = await self._network.pool_for(url)
        target = httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
        return pool.stream("GET", target, headers=headers, extensions={"timeout": timeout})

    async def _refusal(self, response: httpcore.Response, url: ObjectUrl, start: int) -> RequestError:
        headers = httpx.Headers(response.headers)
        if response.status < HTTPStatus.BAD_REQUEST:
            return InvalidAnswer(f"{url.netloc} returned {response.status} instead of a file")
        if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return RangeOutside(f"{url.netloc} has no byte {start:,} of this file", method="GET")
        content = b""
        with suppress(*BREAKS):
            async for piece in response.aiter_stream():
                content += piece
                if len(content) >= MAX_ERROR_BYTES:
                    break
        return _from_answer(response.status, headers, content, url, self._clock.now())

    async def aclose(self) -> None:
        """Close all connections; later reads are refused."""
        self._is_closed = True
        await self._network.aclose()


async def _pieces(
    response: httpcore.Response, head: ObjectHead, url: ObjectUrl, start: int, end: int | None
) -> AsyncGenerator[bytes]:
    """Yield the requested bytes of the body.

    If a server ignores ranges, the body begins earlier than requested, and what follows is not read.
    """
    offset = head.start
    announced_end = None if head.length is None else head.start + head.length
    async for chunk in response.aiter_stream():
        piece = chunk[max(0, start - offset) : None if end is None else max(0, end - offset)]
        if piece:
            yield piece
        offset += len(chunk)
        if announced_end is not None and offset > announced_end:
            # Without a Content-Length, only the body's end proves that the announced range was all.
            raise InvalidAnswer(f"{url.netloc} sent more of the file than it announced")
        if not head.is_partial and end is not None and offset >= end:
            return
    if announced_end is not None and offset < announced_end:
        raise Unreachable(f"{url.netloc} closed the connection in the middle of the file", method="GET")


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


def _read_head(response: httpcore.Response, url: ObjectUrl, start: int, end: int | None) -> ObjectHead:
    """Parse the headers of a successful answer. Raises InvalidAnswer if they are of another range."""
    headers = httpx.Headers(response.headers)
    text = headers.get("content-length", "").strip()
    length = int(text) if _LENGTH.fullmatch(text) else None
    first, span, total = 0, length, length
    is_partial = response.status == HTTPStatus.PARTIAL_CONTENT
    if is_partial:
        announced = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
        if announced is None:
            raise InvalidAnswer(f"{url.netloc} sent a part of the file without saying which")
        first, last = int(announced[1]), int(announced[2])
        total = None if announced[3] == "*" else int(announced[3])
        span = last - first + 1
        if last < first or length not in (None, span) or (total is not None and last >= total):
            raise InvalidAnswer(f"{url.netloc} sent a different part of the file than it announced")
        if first != start or (end is not None and last >= end):
            raise InvalidAnswer(f"{url.netloc} sent a different part of the file than requested")
    return ObjectHead(
        start=first,
        length=span,
        total_bytes=total,
        is_partial=is_partial,
        version=(headers.get("etag") or headers.get("last-modified") or "").strip(),
        content_type=headers.get("content-type", "").strip().lower(),
        digest=_digest_in(headers, is_whole=not is_partial or (first == 0 and span == total)),
    )


_KINDS: dict[int, type[ErrorAnswer]] = {
    # Stores answer an expired signature with 403, expired credentials with 400, some with 401 or 404.
    **dict.fromkeys((400, 401, 403, 404, 410), UrlExpired),
    HTTPStatus.REQUEST_TIMEOUT: ServerFault,
    HTTPStatus.TOO_MANY_REQUESTS: RateLimited,
}
_TEMPORARY_CODES = frozenset({"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"})


class RangeOutside(InvalidAnswer):
    """The object ends before the range."""


def _from_answer(
    status: int, headers: httpx.Headers, content: bytes, url: ObjectUrl, now: datetime
) -> ErrorAnswer:
    code, message = _server_message(content, url)
    is_temporary = code in _TEMPORARY_CODES or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    kind = ServerFault if is_temporary else _KINDS.get(status, BadRequest)
    details = f"{status}" + (f" {code}" if code else "") + (f": {message}" if message else "")
    return kind(
        f"{url.netloc} answered {details}",
        status=status,
        code=code,
        server_message=message,
        retry_after_s=parse_retry_after(headers.get("retry-after"), date=headers.get("date"), now=now),
        method="GET",
        path=url.path,
    )


def element(text: str, name: str) -> str | None:
    """Return the text of the first XML element with that name; stores' errors are too simple for a parser."""
    match = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return unescape(match[1]).strip() or None if match else None


def _server_message(content: bytes, url: ObjectUrl) -> tuple[str | None, str | None]:
    """Return the store's code and message; other XML elements may quote the signature."""
    text = content.decode("utf-8", errors="replace")
    code, message = element(text, "Code"), element(text, "Message")
    if code is None and message is None:
        message = "HTML" if "<" in text else text
    store = keyless_remote(url)
    shown = [clean(url.without_secrets(part or ""), store) or None for part in (code, message)]
    return shown[0], shown[1]


_MD5_TAG = re.compile(r'"([0-9a-f]{32})"', re.ASCII)


def _digest_in(headers: httpx.Headers, *, is_whole: bool) -> str:
    """Return a digest of the whole object, like ``sha256:0f…``; empty if the store sends none.

    ``is_whole`` is True if the body is the whole object: Amazon's checksum and Content-MD5 may cover only the
    part that was requested, Google's hash never does.
    """
    google = dict(item.strip().partition("=")[::2] for item in headers.get("x-goog-hash", "").split(","))
    digests = [("md5", google.get("md5", ""))]
    if is_whole:
        # A checksum of checksums ends with the number of parts: it is not base64 and cannot be verified.
        of_body = (("sha256", "x-amz-checksum-sha256"), ("md5", "content-md5"))
        digests += [(algorithm, headers.get(name, "")) for algorithm, name in of_body]
    for algorithm, text in digests:
        with suppress(binascii.Error, ValueError):
            raw = base64.b64decode(text.strip(), validate=True)
            if len(raw) == hashlib.new(algorithm, usedforsecurity=False).digest_size:
                return f"{algorithm}:{raw.hex()}"
    tag = _MD5_TAG.fullmatch(headers.get("etag", "").strip())
    return f"md5:{tag[1]}" if tag and _tags_are_md5(headers) else ""


def _tags_are_md5(headers: httpx.Headers) -> bool:
    """Return True if this store's 32-digit entity tags are MD5 sums.

    S3's are, except for objects encrypted with KMS or customer keys; other servers may use anything.
    """
    is_s3 = "x-amz-request-id" in headers or "x-amz-id-2" in headers
    encryption = headers.get("x-amz-server-side-encryption", "").lower()
    has_own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    return is_s3 and "kms" not in encryption and not has_own_key
