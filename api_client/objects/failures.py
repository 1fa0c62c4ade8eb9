"""Object stores that say no, and connections that break, as the client's own errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from html import unescape
from http import HTTPStatus

import httpx
import urllib3.exceptions as broken

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
from api_client.objects.urls import ObjectUrl
from api_client.remotes import Remote

_CLOSED_DOORS = frozenset(
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
    """The range lies outside the object, which is of ``total_bytes`` (None: not told)."""

    total_bytes: int | None = None


def from_answer(
    status: int, headers: Mapping[str, str], content: bytes, url: ObjectUrl, now: datetime
) -> ErrorAnswer:
    """The error for an answer of status 4xx or 5xx; ``content`` is the beginning of its body."""
    code, words = _server_words(content, url)
    kind: type[ErrorAnswer] = BadRequest
    if code in _TEMPORARY_CODES or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = ServerFault
    elif status in _CLOSED_DOORS:
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
        path=url.target.partition("?")[0],
    )


def from_break(error: Exception, url: ObjectUrl) -> RequestError:
    """The error for a connection that could not be made, or broke."""
    alike: Exception
    if isinstance(error, broken.ProxyError):
        alike = httpx.ProxyError("it did not let us through")
    elif isinstance(error, broken.NewConnectionError | broken.SSLError):
        alike = httpx.ConnectError("no connection")
    elif isinstance(error, broken.ConnectTimeoutError):
        alike = httpx.ConnectTimeout("")
    elif isinstance(error, broken.TimeoutError | TimeoutError):
        alike = httpx.ReadTimeout("")
    elif isinstance(error, broken.ProtocolError | OSError):
        alike = httpx.ReadError("the body ended too early")
    else:
        alike = error
    if alike is not error:
        alike.__cause__ = error
    line = RequestLine("GET", url.target.partition("?")[0])
    return from_exception(alike, _nobody(url), url.netloc, line).error


def _nobody(url: ObjectUrl) -> Remote:
    """The store as something that has no key of ours."""
    return Remote("object store", url.netloc, url.netloc, key=None, key_origin="")


def _server_words(content: bytes, url: ObjectUrl) -> tuple[str | None, str | None]:
    """The store's code and message. Other elements of its XML may quote the signature: they are left."""
    text = content.decode("utf-8", errors="replace")
    code, words = _element(text, "Code"), _element(text, "Message")
    if code is None and words is None:
        words = "it answered HTML" if "<" in text else text
    found = tuple(
        clean(url.without_secrets(part), _nobody(url)) or None if part else None for part in (code, words)
    )
    return found[0], found[1]


def _element(text: str, name: str) -> str | None:
    found = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return unescape(found[1]).strip() or None if found else None
