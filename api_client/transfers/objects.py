"""Read byte ranges of objects behind presigned URLs."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from html import unescape
from http import HTTPStatus
from urllib.parse import parse_qsl, urljoin

import httpcore
import httpx

from api_client.addresses import BaseUrl, Destinations, parse_url
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
from api_client.http.failures import RequestLine, clean, from_exception
from api_client.http.retry import JITTER_RANDOM, RetryPolicy, parse_retry_after, retrying
from api_client.transfers.network import CONNECTION_ERRORS, Network

READ_TIMEOUT_S = 30.0  # maximum time without data, after which the connection counts as broken
MAX_REDIRECTS = 3


@dataclass(frozen=True)
class ObjectUrl:
    """A presigned URL. Its query grants access, so messages quote only ``site.netloc`` and ``path``."""

    text: str
    site: BaseUrl
    path: str
    query: str

    @classmethod
    def parse(cls, text: str) -> ObjectUrl:
        """Parse a URL. Raises InvalidAnswer unless it is https, or plain http to this machine."""
        site, split_url = parse_url(text, source="a file URL", error=InvalidAnswer)
        return cls(text, site, split_url.path or "/", split_url.query)

    def redirected(self, location: str) -> ObjectUrl:
        """Return the target of a redirect. Its host gets only the secrets in the new URL.

        Object stores redirect if a bucket is in another region. Raises RedirectRefused for a target that is
        not a usable URL, or that is on this machine while this URL is not.
        """
        try:
            target = ObjectUrl.parse(urljoin(self.text, location) if location else "")
        except (InvalidAnswer, ValueError):
            raise RedirectRefused(f"{self.site.netloc} redirected to an unusable address") from None
        if target.site.is_loopback and not self.site.is_loopback:
            raise RedirectRefused(f"{self.site.netloc} redirected to this machine; not followed")
        return target

    def without_secrets(self, text: str) -> str:
        """Return ``text`` without the values in the query, which grant access to the object."""
        for _name, value in parse_qsl(self.query):
            if (
                len(value) >= 6
            ):  # shorter values are no secrets, and replacing them would garble ordinary text
                text = text.replace(value, "[secret]")
        return text


@dataclass(frozen=True, slots=True)
class ObjectResponse:
    """A store's response: the whole object or, with ``is_partial``, the requested range."""

    chunks: AsyncGenerator[bytes]
    """The bytes from the requested start on; a store that ignores ranges sends all up to the object's end."""

    is_partial: bool
    total_bytes: int | None
    """Size of the whole object; None if the server does not send it."""

    version: str
    """The object's ETag, else its modification time, to detect a changed object; empty if unknown."""

    digest: str
    """Digest of the whole object, like ``sha256:0f…``; empty if unknown."""

    content_type: str


class RangeNotSatisfiable(InvalidAnswer):
    """The object ends before the range."""


class Objects:
    """Reads objects. No key, cookie or other header of ours is sent to a URL's host.

    Redirects are followed (stores redirect between regions), but never from https to http. ``destinations``
    decides which addresses may be connected to, by default only the public internet. Connects on the first
    read.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        retry: RetryPolicy | None = None,
        destinations: Destinations | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._retry = retry or RetryPolicy()
        self._network = Network(destinations)

    async def read(self, url: str, *, start: int = 0, length: int) -> bytes:
        """Read ``length`` bytes from ``start``; fewer if the object ends earlier.

        Interrupted reads are retried. If a server ignores ranges, the object is read up to the last byte
        needed, and then the connection is closed. Raises UrlExpired if a fresh URL is needed, and the
        other subclasses of RequestError.
        """

        async def read_once() -> bytes:
            content = bytearray()
            async with self.open(url, start=start, end=start + length) as object_response:
                async for data in object_response.chunks:
                    content += data
                    if len(content) >= length:
                        break
            return bytes(content[:length])

        if not length:
            return b""
        try:
            return await retrying(read_once, self._retry, sleep=self._clock.sleep, random=JITTER_RANDOM)
        except RangeNotSatisfiable:
            return b""

    @asynccontextmanager
    async def open(
        self, url: str, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[ObjectResponse]:
        """Send one request for the bytes ``start`` … ``end`` (exclusive; None: to the object's end).

        Nothing is retried. Raises RequestError and its subclasses, also while the response's ``chunks`` are
        read.
        """
        current = ObjectUrl.parse(url)
        try:
            for _ in range(MAX_REDIRECTS + 1):
                async with await self._send(current, start, end) as response:
                    if response.status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                        object_response = _parse_response(response, current, start, end)
                        async with aclosing(object_response.chunks):
                            yield object_response
                        return
                    headers = httpx.Headers(response.headers)
                    if not HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
                        raise await self._error_response(response, headers, current, start)
                    current = current.redirected(headers.get("location", ""))
        except CONNECTION_ERRORS as error:
            line = RequestLine("GET", current.path)
            problem = from_exception(error, None, current.site.netloc, line)
        else:
            problem = RedirectRefused(f"{current.site.netloc} redirected more than {MAX_REDIRECTS} times")
        raise problem

    async def _send(
        self, url: ObjectUrl, start: int, end: int | None
    ) -> AbstractAsyncContextManager[httpcore.Response]:
        headers: dict[str | bytes, str | bytes] = {
            "Host": url.site.netloc,
            "User-Agent": user_agent(),
            "Accept": "*/*",
            # Offsets, sizes and digests are of the uncompressed object.
            "Accept-Encoding": "identity",
        }
        if start or end is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        timeout = dict.fromkeys(("read", "write"), READ_TIMEOUT_S) | {"connect": CONNECT_TIMEOUT_S}
        pool = await self._network.pool_for(url.site)
        target = url.path + (f"?{url.query}" if url.query else "")
        address = httpcore.URL(scheme=url.site.scheme, host=url.site.host, port=url.site.port, target=target)
        return pool.stream("GET", address, headers=headers, extensions={"timeout": timeout})

    async def _error_response(
        self, response: httpcore.Response, headers: httpx.Headers, url: ObjectUrl, start: int
    ) -> RequestError:
        host, status = url.site.netloc, response.status
        if status < HTTPStatus.BAD_REQUEST:
            return InvalidAnswer(f"{host} returned {status} instead of a file")
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return RangeNotSatisfiable(f"{host} has no byte {start:,} of this file")
        content = b""
        with suppress(*CONNECTION_ERRORS):
            async for data in response.aiter_stream():
                content += data
                if len(content) >= 65_536:
                    break
        # Only these two XML elements are shown: others may quote the signature.
        text = url.without_secrets(content.decode("utf-8", errors="replace"))
        code, message = xml_element(text, "Code"), xml_element(text, "Message")
        if not code and not message:
            message = "HTML" if "<" in text else clean(text)
        is_busy = code in {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"}
        is_temporary = is_busy or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        error_type = ServerFault if is_temporary else _ERROR_TYPES.get(status, BadRequest)
        return error_type(
            f"{host} answered {status} {code}".rstrip() + f": {message}".rstrip(": ."),
            status=status,
            code=code or None,
            server_message=message or None,
            retry_after_s=parse_retry_after(
                headers.get("retry-after"), date=headers.get("date"), now=self._clock.now()
            ),
            method="GET",
            path=url.path,
        )

    async def aclose(self) -> None:
        await self._network.aclose()


_ERROR_TYPES: dict[int, type[ErrorAnswer]] = {
    # Most stores answer 403 for an expired signature and 400 for expired credentials, some 401 or 404.
    **dict.fromkeys((400, 401, 403, 404, 410), UrlExpired),
    HTTPStatus.REQUEST_TIMEOUT: ServerFault,
    HTTPStatus.TOO_MANY_REQUESTS: RateLimited,
}


def xml_element(text: str, name: str) -> str:
    """Return the text of the first XML element with this name, or an empty string.

    A regular expression is enough, because stores' error documents have no attributes and little nesting.
    """
    match = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return clean(unescape(match[1])) if match else ""


def _parse_response(
    response: httpcore.Response, url: ObjectUrl, start: int, end: int | None
) -> ObjectResponse:
    """Parse the headers of a successful response.

    Raises InvalidAnswer if the store sent another range than requested.
    """
    headers = httpx.Headers(response.headers)
    length = headers.get("content-length")
    total = body_end = int(length) if length else None
    body_start, is_partial = 0, response.status == HTTPStatus.PARTIAL_CONTENT
    if is_partial:
        match = re.fullmatch(
            r"bytes\s+(\d{1,18})-(\d{1,18})/(?:(\d{1,18})|\*)",
            headers.get("content-range", "").strip(),
            re.ASCII,
        )
        if match is None:
            raise InvalidAnswer(f"{url.site.netloc} sent a part of the file without saying which")
        body_start, body_end = int(match[1]), int(match[2]) + 1
        total = int(match[3]) if match[3] else None
        is_too_long = any(limit is not None and body_end > limit for limit in (end, total))
        if body_start != start or body_end <= start or is_too_long:
            raise InvalidAnswer(f"{url.site.netloc} sent another part of the file than requested")
    return ObjectResponse(
        _chunks(response, url.site.netloc, body_start, body_end, start),
        is_partial,
        total,
        version=(headers.get("etag") or headers.get("last-modified") or "").strip(),
        digest=_digest_of(headers, is_whole=not is_partial),
        content_type=headers.get("content-type", "").strip().lower(),
    )


async def _chunks(
    response: httpcore.Response, host: str, body_start: int, body_end: int | None, start: int
) -> AsyncGenerator[bytes]:
    """Yield the object's bytes from ``start`` on; the body is the range ``body_start`` … ``body_end``."""
    offset = body_start
    async for chunk in response.aiter_stream():
        if body_end is not None and offset + len(chunk) > body_end:
            # Without Content-Length, the server may send more than the range that it announced.
            raise InvalidAnswer(f"{host} sent more of the file than it announced")
        if data := chunk[max(0, start - offset) :]:
            yield data
        offset += len(chunk)
    if body_end is not None and offset < body_end:
        raise Unreachable(f"{host} closed the connection in the middle of the file", method="GET")


def _digest_of(headers: httpx.Headers, *, is_whole: bool) -> str:
    """Return a digest of the whole object, like ``sha256:0f…``; empty if the store sends none.

    ``is_whole`` is True if the body is the whole object. Otherwise Amazon's checksum may cover only the
    requested part; Google's hash always covers the whole object.
    """
    google = dict(item.strip().partition("=")[::2] for item in headers.get("x-goog-hash", "").split(","))
    # For a multipart upload, Amazon sends a checksum of checksums, which cannot be verified. It ends with the
    # number of parts, so it is not base64.
    amazon = headers.get("x-amz-checksum-sha256", "") if is_whole else ""
    for algorithm, text, size_bytes in (("md5", google.get("md5", ""), 16), ("sha256", amazon, 32)):
        with suppress(binascii.Error, ValueError):
            raw = base64.b64decode(text.strip(), validate=True)
            if len(raw) == size_bytes:
                return f"{algorithm}:{raw.hex()}"
    # S3's ETags of 32 digits are MD5 sums, except for objects encrypted with KMS or customer keys; other
    # servers' ETags may be anything.
    tag = re.fullmatch(r'"([0-9a-f]{32})"', headers.get("etag", "").strip(), re.ASCII)
    is_s3 = "x-amz-request-id" in headers or "x-amz-id-2" in headers
    encryption = headers.get("x-amz-server-side-encryption", "").lower()
    has_own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    return f"md5:{tag[1]}" if tag and is_s3 and "kms" not in encryption and not has_own_key else ""
