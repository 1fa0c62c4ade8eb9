"""Connect to object stores: only at checked addresses, without any key, cookie or header of ours.

Uses httpcore, on which httpx is built: it lets us choose the IP address to connect to while TLS checks the
host name, and it sends paths unchanged (httpx would remove ``./``).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property

import httpcore
import httpx

from api_client.addresses import BaseUrl, Destinations
from api_client.errors import ConfigurationError, RequestError
from api_client.http.connection import CONNECT_TIMEOUT_S, KEEP_ALIVE_S, create_tls_context

CONNECTION_ERRORS = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
)
"""Exceptions of httpcore for a connection that fails or breaks; ``http.failures`` translates them."""

# The size of asyncio's buffer. httpcore's 64 KiB would split each chunk in four, and cost a third more CPU
# time.
httpcore.AsyncHTTP11Connection.READ_NUM_BYTES = 256 * 1024

# At level DEBUG, httpcore would log redirect targets, whose query strings grant access.
logging.getLogger("httpcore.http11").addFilter(lambda record: "location" not in record.getMessage().lower())


class _CheckedSockets(httpcore.AnyIOBackend):
    """Resolves a host once, checks all its addresses, and connects to the first address that accepts."""

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
        problem: Exception | None = None
        try:
            addresses = await asyncio.to_thread(self._destinations.resolve, host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for address in addresses:
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem or httpcore.ConnectError(f"{host} has no address")


class Network:
    """Connection pools for the object stores that presigned URLs name.

    ``destinations`` decides which addresses may be reached. Connections are opened on demand, kept for later
    requests, and bound to one event loop. All methods raise AddressRefused, ConfigurationError for unusable
    proxies or certificates, and one of ``CONNECTION_ERRORS``.
    """

    def __init__(self, destinations: Destinations | None = None) -> None:
        self._destinations = destinations or Destinations()
        self._sockets = _CheckedSockets(self._destinations)
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}
        self._is_closed = False

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return create_tls_context()

    async def pool_for(self, site: BaseUrl) -> httpcore.AsyncConnectionPool:
        """Return the connection pool for the site: direct, or through its proxy."""
        if self._is_closed:
            raise RequestError("the client is closed")
        proxy = await self.proxy_for(site)
        tls = await asyncio.to_thread(lambda: self._tls) if site.scheme == "https" else None
        pool_key = f"{site.scheme} {proxy and proxy.url}"
        if pool_key not in self._pools:
            proxy_settings = httpcore.Proxy(str(proxy.url), auth=proxy.raw_auth) if proxy else None
            # No limit: when a request is cancelled, httpcore may leak its slot in the pool.
            self._pools[pool_key] = httpcore.AsyncConnectionPool(
                tls,
                proxy=proxy_settings,
                max_connections=None,
                keepalive_expiry=KEEP_ALIVE_S,
                network_backend=None if proxy_settings else self._sockets,
            )
        return self._pools[pool_key]

    async def proxy_for(self, site: BaseUrl) -> httpx.Proxy | None:
        """Return the environment's proxy for the site; None without a proxy.

        The addresses of a proxied site are checked, too, if its host can be resolved here.
        """
        if not site.proxy:
            return None
        with suppress(OSError):  # the proxy may resolve a name that is unknown here
            await asyncio.to_thread(self._destinations.resolve, site.host, site.port)
        with suppress(ValueError, httpx.InvalidURL):
            proxy = httpx.Proxy(site.proxy)
            if proxy.url.scheme == "http" and proxy.url.host:
                return proxy
        # Don't quote the proxy's address, which may contain a password.
        raise ConfigurationError("unusable proxy in the environment: expected one like http://host:port")

    async def check_reachable(self, site: BaseUrl) -> None:
        """Open and close a connection to the site, to fail early; do nothing if a proxy is used."""
        if await self.proxy_for(site) is not None:
            return
        stream = await self._sockets.connect_tcp(site.host, site.port, CONNECT_TIMEOUT_S)
        try:
            if site.scheme == "https":
                tls = await asyncio.to_thread(lambda: self._tls)
                stream = await stream.start_tls(tls, site.host, CONNECT_TIMEOUT_S)
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        """Close all connections; later requests are refused."""
        self._is_closed = True
        for pool in self._pools.values():
            await pool.aclose()
