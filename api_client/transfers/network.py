"""Reach object stores: only at checked addresses, without any key, cookie or header of ours.

httpcore, on which httpx is built, is used directly: only it lets us choose the address to connect to while
TLS checks the name, and it sends paths as they are (httpx would tidy ``./`` away).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpcore
import httpx

from api_client.addresses import BaseUrl, Destinations, host_and_port, proxy_of, split_url
from api_client.errors import ConfigurationError, InvalidAnswer, RedirectRefused, RequestError
from api_client.http.connection import CONNECT_TIMEOUT_S, KEEP_ALIVE_S, trusting_context
from api_client.http.failures import RequestLine, from_exception
from api_client.remotes import Remote

READ_TIMEOUT_S = 30.0  # maximum time without data within a body; after that the connection counts as broken
_MIN_SECRET_LENGTH = 6

BREAKS = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    OSError,
)
"""All that is raised if a connection fails or breaks; ``from_break`` translates it."""

# At level DEBUG, httpcore would log the targets of redirects, whose queries are keys.
logging.getLogger("httpcore.http11").addFilter(lambda record: "location" not in record.getMessage().lower())


@dataclass(frozen=True)
class ObjectUrl(BaseUrl):
    """URL of an object: its server, and ``target``, which is path and query, unchanged.

    The query is a key, so messages show ``netloc`` and ``path``.
    """

    text: str = ""
    target: str = ""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

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
    parts = split_url(text)
    if parts is None:
        raise InvalidAnswer("a file URL has an invalid host, or is not http or https")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    url = ObjectUrl(*host_and_port(parts), text=text, target=target)
    if parts.username is not None or parts.password is not None:
        raise InvalidAnswer(f"a file URL contains a user name ({url.host}); presigned URLs have none")
    if url.scheme == "http" and not url.is_loopback:
        raise InvalidAnswer(f"a file URL is http://{url.host}, which is not encrypted; only https is allowed")
    return url


def redirected(url: ObjectUrl, location: str | None) -> ObjectUrl:
    """Return the target of a redirect. The only secrets sent there are those in the new URL itself.

    Object stores redirect if a bucket is in another region. Raises RedirectRefused for a target that is
    not a usable URL, is less protected than the first, or is on this machine while the first was not.
    """
    target = None
    with suppress(InvalidAnswer, ValueError):
        target = parse_object_url(urljoin(url.text, location or ""))
    if not location or target is None:
        raise RedirectRefused(f"{url.netloc} redirected to an unusable address", method="GET")
    if target.is_loopback and not url.is_loopback:
        raise RedirectRefused(f"{url.netloc} redirected to this machine; not followed", method="GET")
    return target


class _CheckedSockets(httpcore.AnyIOBackend):
    """Resolves a name once, checks its addresses, and connects to the first of them that answers."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = await asyncio.to_thread(self._destinations.resolve, host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        problem: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem


class Network:
    """Connections to servers that a remote names; ``destinations`` decides which addresses may be reached.

    Opened on demand, kept for the next request, and of use in one event loop only. All methods raise
    AddressRefused, ConfigurationError for unusable proxies or certificates, and one of ``BREAKS``.
    """

    def __init__(self, destinations: Destinations | None = None) -> None:
        self._destinations = destinations or Destinations()
        self._sockets = _CheckedSockets(self._destinations)
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return trusting_context()

    async def pool_for(self, site: BaseUrl) -> httpcore.AsyncConnectionPool:
        """Return the pool of connections to the site: direct ones, or those through its proxy."""
        proxy = await self.proxy_for(site)
        tls = await asyncio.to_thread(lambda: self._tls) if site.scheme == "https" else None
        name = f"{site.scheme} {proxy and proxy.url}"
        if name not in self._pools:
            # No limit to all connections: httpcore may lose one when a request is cancelled, and never gets
            # its place in the pool back.
            if proxy is None:
                self._pools[name] = httpcore.AsyncConnectionPool(
                    tls, max_connections=None, keepalive_expiry=KEEP_ALIVE_S, network_backend=self._sockets
                )
            else:
                self._pools[name] = httpcore.AsyncHTTPProxy(
                    str(proxy.url),
                    proxy.raw_auth,
                    ssl_context=tls,
                    max_connections=None,
                    keepalive_expiry=KEEP_ALIVE_S,
                )
        return self._pools[name]

    async def proxy_for(self, site: BaseUrl) -> httpx.Proxy | None:
        """Return the environment's proxy for the site, whose address is checked if it is known here."""
        url = proxy_of(site.scheme, site.host)
        if not url:
            return None
        await asyncio.to_thread(self._destinations.check_proxied, site.host, site.port)
        with suppress(ValueError, httpx.InvalidURL):
            proxy = httpx.Proxy(url)
            if proxy.url.scheme == "http" and proxy.url.host:
                return proxy
        # The proxy's address may contain a password.
        raise ConfigurationError("unusable proxy in the environment: expected one like http://host:port")

    async def reach(self, site: BaseUrl) -> None:
        """Connect to the site, or to its proxy, and hang up."""
        proxy = await self.proxy_for(site)
        if proxy is None:
            stream = await self._sockets.connect_tcp(site.host, site.port, CONNECT_TIMEOUT_S)
        else:
            there = proxy.url
            stream = await httpcore.AnyIOBackend().connect_tcp(
                there.host, there.port or 80, CONNECT_TIMEOUT_S
            )
        try:
            if proxy is None and site.scheme == "https":
                tls = await asyncio.to_thread(lambda: self._tls)
                stream = await stream.start_tls(tls, site.host, CONNECT_TIMEOUT_S)
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()


def from_break(error: Exception, site: BaseUrl, line: RequestLine) -> RequestError:
    """Build the error for a connection that failed or broke."""
    if isinstance(error, httpcore.TimeoutException | httpcore.ConnectError | httpcore.ProxyError):
        alike: httpx.TransportError = getattr(httpx, type(error).__name__)(str(error))
    else:
        alike = httpx.ReadError("the body ended early")
    alike.__cause__ = error
    return from_exception(alike, keyless_remote(site), site.netloc, line).error


def keyless_remote(site: BaseUrl) -> Remote:
    return Remote("object store", site.netloc, site.netloc, key=None, key_origin="")
