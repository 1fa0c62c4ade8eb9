"""Connect to an object store, and interpret its answers' headers and errors.

urllib3 runs in threads here instead of httpx on the event loop: at hundreds of MiB/s the loop could do
nothing else, and the dashboard runs on it. ``benchmarks/downloads.py`` has the figures. None of our headers,
keys or cookies is sent to a store.
"""

from __future__ import annotations

import base64
import binascii
import logging
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from http import HTTPStatus
from socket import gaierror, socket
from typing import ClassVar
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx
import urllib3
import urllib3.exceptions as broken
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError
from urllib3.util.connection import create_connection

from api_client.addresses import DEFAULT_PORTS, Destinations, is_host, is_loopback, proxy_of
from api_client.errors import (
    BadRequest,
    ConfigurationError,
    ErrorAnswer,
    InvalidAnswer,
    RateLimited,
    RedirectRefused,
    RequestError,
    ServerFault,
    UrlExpired,
)
from api_client.http.connection import CONNECT_TIMEOUT_S
from api_client.http.failures import RequestLine, clean, from_exception
from api_client.http.retry import parse_retry_after
from api_client.remotes import Remote

_CONTENT_RANGE = re.compile(r"bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)
_UNSATISFIED = re.compile(r"bytes\s+\*/(\d{1,18})", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_MD5_TAG = re.compile(r'"([0-9a-f]{32})"', re.ASCII)

_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64, "crc32": 4}
"""Digests that the standard library can compute, and their sizes in bytes."""
_DIGEST_NAMES = {"md5": "md5", "sha": "sha1", "sha-1": "sha1", "sha-256": "sha256", "sha-512": "sha512"}


@dataclass(frozen=True, slots=True)
class Digest:
    """Digest sent by a server; ``of_whole`` is True if it certainly covers the whole object.

    Otherwise it may cover only the bytes in the answer.
    """

    algorithm: str
    hexadecimal: str
    of_whole: bool


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """Headers of an answer: the body's bytes begin at ``start`` of an object of ``total_bytes``.

    ``length`` and ``total_bytes`` are None if the server does not send them; ``is_partial`` distinguishes
    a range from the whole object. ``etag`` and ``last_modified`` are unchanged, empty if missing.
    """

    start: int
    length: int | None
    total_bytes: int | None
    is_partial: bool
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    digests: tuple[Digest, ...] = ()

    @property
    def is_whole(self) -> bool:
        """True if the body is the whole object."""
        return not self.is_partial or (self.start == 0 and self.length == self.total_bytes)


def read_head(status: int, headers: Mapping[str, str]) -> ObjectHead | None:
    """Parse the headers of a successful answer; None if they contradict each other.

    ``headers`` must be case-insensitive.
    """
    length = content_length(headers)
    span: int | None
    total: int | None
    if status == HTTPStatus.PARTIAL_CONTENT:
        found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
        if found is None:
            return None
        start, last = int(found[1]), int(found[2])
        total = None if found[3] == "*" else int(found[3])
        span = last - start + 1
        contradicts = length not in (None, span) or (total is not None and last >= total)
        if last < start or contradicts:
            return None
        is_partial = True
    else:
        start, span, total, is_partial = 0, length, length, False
    whole = not is_partial or (start == 0 and span == total)
    return ObjectHead(
        start=start,
        length=span,
        total_bytes=total,
        is_partial=is_partial,
        etag=headers.get("etag", "").strip(),
        last_modified=headers.get("last-modified", "").strip(),
        content_type=headers.get("content-type", "").strip().lower(),
        digests=tuple(_digests(headers, whole=whole)),
    )


def content_length(headers: Mapping[str, str]) -> int | None:
    """Return the announced length, or None."""
    text = headers.get("content-length", "").strip()
    return int(text) if _LENGTH.fullmatch(text) else None


def total_of_unsatisfied(headers: Mapping[str, str]) -> int | None:
    """Return the object's size from an answer to an unsatisfiable range (416), or None."""
    found = _UNSATISFIED.fullmatch(headers.get("content-range", "").strip())
    return int(found[1]) if found else None


def _digests(headers: Mapping[str, str], *, whole: bool) -> Iterator[Digest]:
    """Yield every digest that Python can verify.

    ``Digest`` and ``Repr-Digest`` cover the whole object whatever part is sent (RFC 3230, RFC 9530), as
    does Google's ``x-goog-hash``. Amazon's checksums may cover a part, and Content-MD5 covers the body.
    """
    for name, value in _pairs(headers.get("digest", "") + "," + headers.get("repr-digest", "")):
        yield from _decoded(_DIGEST_NAMES.get(name.lower()), value.strip(":"), True)
    for name, value in _pairs(headers.get("x-goog-hash", "")):
        yield from _decoded("md5" if name == "md5" else None, value, True)
    for algorithm in ("sha256", "sha1", "crc32"):
        # A checksum of checksums ends with the number of parts: it is not base64 and cannot be verified.
        yield from _decoded(algorithm, headers.get(f"x-amz-checksum-{algorithm}", ""), whole)
    yield from _decoded("md5", headers.get("content-md5", ""), whole)
    tag = _MD5_TAG.fullmatch(headers.get("etag", "").strip())
    if tag and _tags_are_md5(headers):
        yield Digest("md5", tag[1], of_whole=True)


def _tags_are_md5(headers: Mapping[str, str]) -> bool:
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


def _decoded(algorithm: str | None, text: str, of_whole: bool) -> Iterator[Digest]:
    if algorithm is None or not text:
        return
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return
    if len(raw) == _SIZES[algorithm]:
        yield Digest(algorithm, raw.hex(), of_whole)


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


def from_answer(
    status: int, headers: Mapping[str, str], content: bytes, url: ObjectUrl, now: datetime
) -> ErrorAnswer:
    """Build the error for an answer with status 4xx or 5xx; ``content`` is the beginning of its body."""
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
        path=url.target.partition("?")[0],
    )


def from_break(error: Exception, url: ObjectUrl) -> RequestError:
    """Build the error for a connection that failed or broke."""
    alike: Exception
    if isinstance(error, broken.ProxyError):
        alike = httpx.ProxyError("the proxy refused the connection")
    elif isinstance(error, broken.NewConnectionError | broken.SSLError):
        alike = httpx.ConnectError("no connection")
    elif isinstance(error, broken.ConnectTimeoutError):
        alike = httpx.ConnectTimeout("")
    elif isinstance(error, broken.TimeoutError | TimeoutError):
        alike = httpx.ReadTimeout("")
    elif isinstance(error, broken.ProtocolError | OSError):
        alike = httpx.ReadError("the body ended early")
    else:
        alike = error
    if alike is not error:
        alike.__cause__ = error
    line = RequestLine("GET", url.target.partition("?")[0])
    return from_exception(alike, _keyless_remote(url), url.netloc, line).error


def _keyless_remote(url: ObjectUrl) -> Remote:
    """Return the store as a remote without a key."""
    return Remote("object store", url.netloc, url.netloc, key=None, key_origin="")


def _server_message(content: bytes, url: ObjectUrl) -> tuple[str | None, str | None]:
    """Return the store's code and message; other XML elements may quote the signature."""
    text = content.decode("utf-8", errors="replace")
    code, words = _element(text, "Code"), _element(text, "Message")
    if code is None and words is None:
        words = "HTML" if "<" in text else text
    found = tuple(
        clean(url.without_secrets(part), _keyless_remote(url)) or None if part else None
        for part in (code, words)
    )
    return found[0], found[1]


def _element(text: str, name: str) -> str | None:
    found = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return unescape(found[1]).strip() or None if found else None


_MIN_SECRET_LENGTH = 6


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    """URL split into the parts that a connection needs; ``target`` is path and query, unchanged."""

    text: str
    scheme: str
    host: str
    port: int
    target: str

    @property
    def netloc(self) -> str:
        """``host`` or ``host:port``, for messages and the Host header: never the query, which is a key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if the host is this machine."""
        return is_loopback(self.host)

    def without_secrets(self, text: str) -> str:
        """Return ``text`` without the values of the URL's query, which grant access to the object."""
        for _name, value in parse_qsl(urlsplit(self.text).query):
            if len(value) >= _MIN_SECRET_LENGTH:
                text = text.replace(value, "[secret]")
        return text


def parse_object_url(text: str) -> ObjectUrl:
    """Parse a presigned URL.

    Raises InvalidAnswer for anything but https (plain http only to this machine), for credentials in the
    address, which would be sent as such, and for characters that are invalid in a URL.
    """
    problem = ""
    try:
        readable = text.isascii() and text.isprintable() and " " not in text and "\\" not in text
        parts = urlsplit(text if readable else "")
        host = (parts.hostname or "").rstrip(".")
        port = parts.port
    except ValueError:
        raise InvalidAnswer("invalid file URL") from None
    if parts.scheme not in DEFAULT_PORTS or not host or port == 0:
        problem = "a file URL must be http or https"
    elif parts.username is not None or parts.password is not None:
        problem = f"a file URL contains a user name ({host}); presigned URLs have none"
    elif not is_host(host):
        problem = f"a file URL has an invalid host: {host[:100]}"
    elif parts.scheme == "http" and not is_loopback(host):
        problem = f"a file URL is http://{host}, which is not encrypted; only https is allowed"
    if problem:
        raise InvalidAnswer(problem)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.startswith("/"):
        target = "/" + target
    return ObjectUrl(text, parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], target)


def redirected(url: ObjectUrl, location: str | None) -> ObjectUrl:
    """Return the target of a redirect. The only secrets sent there are those in the new URL itself.

    Object stores redirect if a bucket is in another region. Raises RedirectRefused for a target that is
    not a usable URL, is less protected than the first, or is on this machine while the first was not.
    """
    try:
        target = parse_object_url(urljoin(url.text, location or ""))
    except (InvalidAnswer, ValueError):
        target = None
    if not location or target is None:
        raise RedirectRefused(f"{url.netloc} redirected to an unusable address", method="GET")
    if target.is_loopback and not url.is_loopback:
        raise RedirectRefused(f"{url.netloc} redirected to this machine; not followed", method="GET")
    return target


READ_TIMEOUT_S = 30.0
"""Maximum time without data within a body; after that the connection counts as broken."""

_SIGNED = re.compile(r"\?\S*(?:signature|credential|token|sig)\S*", re.IGNORECASE)


class _Unsigned(logging.Filter):
    """Removes presigned queries from urllib3's log, because anyone who has one can read the object."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                _SIGNED.sub("?[signed]", one) if isinstance(one, str) else one for one in record.args
            )
        return True


_UNSIGNED = _Unsigned()
"""Shared by all: a logger adds the same filter only once."""

KEPT_PER_HOST = 8
HOSTS_KEPT = 8


class _Checked(HTTPConnection):
    """Connects only to checked addresses; TLS still verifies the host name."""

    destinations: ClassVar[Destinations]

    def _new_conn(self) -> socket:
        problem: HTTPError
        try:
            addresses = self.destinations.resolve(self.host, self.port)
        except gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        for address in addresses:
            try:
                return create_connection(
                    (address, self.port),
                    self.timeout,
                    source_address=self.source_address,
                    socket_options=self.socket_options,
                )
            except TimeoutError as error:
                problem = ConnectTimeoutError(self, "no answer in time")
                problem.__cause__ = error
            except OSError as error:
                problem = NewConnectionError(self, "no connection")
                problem.__cause__ = error
        raise problem


class _CheckedTls(_Checked, HTTPSConnection):
    pass


class ConnectionPools:
    """Connection pools, created on demand. Safe to use from several threads."""

    def __init__(self, destinations: Destinations, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self._destinations = destinations
        logging.getLogger("urllib3.connectionpool").addFilter(_UNSIGNED)
        self._timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=read_timeout_s)
        self._managers: dict[str, urllib3.PoolManager] = {}
        self._lock = threading.Lock()

    def pool(self, url: ObjectUrl) -> urllib3.HTTPConnectionPool:
        """Return the pool for the URL's host.

        Raises AddressRefused, and ConfigurationError for unusable proxies or certificates.
        """
        proxy = proxy_of(url.scheme, url.host)
        if proxy:
            self._destinations.check_proxied(url.host, url.port)
        manager = self._manager(url.scheme, proxy)
        return manager.connection_from_host(url.host, url.port, url.scheme)

    def close(self) -> None:
        """Close idle connections; active ones are closed by their readers."""
        with self._lock:
            managers, self._managers = list(self._managers.values()), {}
        for manager in managers:
            manager.clear()

    def _manager(self, scheme: str, proxy: str) -> urllib3.PoolManager:
        kind = f"{scheme} {proxy}"
        with self._lock:
            if kind not in self._managers:
                self._managers[kind] = self._made(scheme, proxy)
            return self._managers[kind]

    def _made(self, scheme: str, proxy: str) -> urllib3.PoolManager:
        reason = ""
        try:
            options = {
                "num_pools": HOSTS_KEPT,
                "maxsize": KEPT_PER_HOST,
                "timeout": self._timeout,
                "retries": False,
                # Loading the trusted certificates takes a tenth of a second, so do it only for TLS.
                "ssl_context": httpx.create_ssl_context() if scheme == "https" else None,
            }
            if not proxy:
                manager = urllib3.PoolManager(**options)  # type: ignore[arg-type]
                manager.pool_classes_by_scheme = {
                    "http": _checked(urllib3.HTTPConnectionPool, _Checked, self._destinations),
                    "https": _checked(urllib3.HTTPSConnectionPool, _CheckedTls, self._destinations),
                }
                return manager
            return urllib3.ProxyManager(proxy, **options)  # type: ignore[arg-type]
        except (OSError, ValueError, HTTPError) as error:
            reason = type(error).__name__
        # Only the type: the proxy's address may contain a password.
        raise ConfigurationError(f"unusable proxy or certificates in the environment ({reason})")


def _checked(
    pool: type[urllib3.HTTPConnectionPool], connection: type[_Checked], destinations: Destinations
) -> type[urllib3.HTTPConnectionPool]:
    """Return a pool class whose connections are checked, in the same way as urllib3's own SOCKS support."""
    own = type(connection.__name__, (connection,), {"destinations": destinations})
    return type(pool.__name__, (pool,), {"ConnectionCls": own})
