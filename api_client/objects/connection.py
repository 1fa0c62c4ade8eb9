"""Connections to object stores: kept alive, through the environment's proxies, with nothing of ours on them.

urllib3 in threads, not httpx on the event loop: at hundreds of MiB/s the loop would do nothing else, and the
dashboard runs on it. ``benchmarks/downloads.py`` has the figures.
"""

from __future__ import annotations

import logging
import re
import threading
from socket import gaierror, socket
from typing import ClassVar

import httpx
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError
from urllib3.util.connection import create_connection

from api_client.destinations import Destinations, proxy_of
from api_client.errors import ConfigurationError
from api_client.http.connection import CONNECT_TIMEOUT_S
from api_client.objects.urls import ObjectUrl

READ_TIMEOUT_S = 30.0
"""Longest silence in the middle of a body; then the connection is taken for dead."""

_SIGNED = re.compile(r"\?\S*(?:signature|credential|token|sig)\S*", re.IGNORECASE)


class _Unsigned(logging.Filter):
    """Takes presigned queries out of urllib3's own log: whoever has one can read the object."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                _SIGNED.sub("?[signed]", one) if isinstance(one, str) else one for one in record.args
            )
        return True


_UNSIGNED = _Unsigned()
"""One for all: a logger takes the same filter once only."""

KEPT_PER_HOST = 8
HOSTS_KEPT = 8


class _Checked(HTTPConnection):
    """Connects to addresses that were checked; TLS is spoken with the name all the same."""

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


class Connections:
    """Pools of connections, made when they are needed. Safe to use from several threads."""

    def __init__(self, destinations: Destinations, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self._destinations = destinations
        logging.getLogger("urllib3.connectionpool").addFilter(_UNSIGNED)
        self._timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=read_timeout_s)
        self._managers: dict[str, urllib3.PoolManager] = {}
        self._lock = threading.Lock()

    def pool(self, url: ObjectUrl) -> urllib3.HTTPConnectionPool:
        """The pool for the URL's host.

        Raises AddressRefused, and ConfigurationError for unusable proxies or certificates.
        """
        proxy = proxy_of(url.scheme, url.host)
        if proxy:
            self._destinations.check_proxied(url.host, url.port)
        manager = self._manager(url.scheme, proxy)
        return manager.connection_from_host(url.host, url.port, url.scheme)

    def close(self) -> None:
        """Close what is idle; what is under way is closed by whoever reads it."""
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
                # Reading the certificates to trust takes a tenth of a second: only where TLS is spoken.
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
        # The type alone: the proxy's address may hold a password.
        raise ConfigurationError(
            f"the environment's proxy or certificates cannot be used for downloads ({reason})"
        )


def _checked(
    pool: type[urllib3.HTTPConnectionPool], connection: type[_Checked], destinations: Destinations
) -> type[urllib3.HTTPConnectionPool]:
    """Return the pool's class with connections that are checked, as urllib3's own SOCKS support does it."""
    own = type(connection.__name__, (connection,), {"destinations": destinations})
    return type(pool.__name__, (pool,), {"ConnectionCls": own})
