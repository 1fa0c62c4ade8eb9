"""The httpx client for a remote: who it trusts, through which proxies it goes, how the key gets on."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Sequence
from functools import cache

import httpx

from api_client.addresses import BaseUrl
from api_client.clock import Clock, SystemClock
from api_client.destinations import proxy_of
from api_client.errors import ConfigurationError
from api_client.http.renewal import KeyAuth
from api_client.remotes import Remote
from api_client.version import __version__

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
WRITE_TIMEOUT_S = 60.0
POOL_TIMEOUT_S = 10.0

MAX_IN_FLIGHT = 4
"""Requests under way at once: more of them were measured to be slower, not faster."""

KEEP_ALIVE_S = 30.0
"""How long an idle connection is kept: longer than the time between two polls."""


async def connect(
    remote: Remote,
    sites: Sequence[BaseUrl],
    http_transport: httpx.AsyncBaseTransport | None = None,
    *,
    clock: Clock | None = None,
) -> httpx.AsyncClient:
    """An httpx client for the hosts of ``remote``; it opens connections when they are needed.

    ``clock`` tells whether a login has ended.

    Raises ConfigurationError if the environment's certificates or proxies cannot be used.
    """
    needs_tls = http_transport is None and any(site.scheme == "https" for site in sites)
    # Reading the certificates to trust takes a tenth of a second: not on the event loop.
    context = await asyncio.to_thread(_trusting_context) if needs_tls else _trusting_nobody()
    limits = httpx.Limits(max_connections=MAX_IN_FLIGHT, keepalive_expiry=KEEP_ALIVE_S)
    try:
        # Not httpx's own reading of the environment: whether there is a proxy must be known elsewhere, too.
        mounts = {
            f"all://{site.url_host}": httpx.AsyncHTTPTransport(proxy=proxy, verify=context, limits=limits)
            for site in sites
            if http_transport is None and (proxy := proxy_of(site.scheme, site.host))
        }
        return httpx.AsyncClient(
            auth=KeyAuth(remote, user_agent(), clock or SystemClock()),
            headers={"User-Agent": user_agent(), "Accept": "application/json"},
            timeout=httpx.Timeout(
                connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S, write=WRITE_TIMEOUT_S, pool=POOL_TIMEOUT_S
            ),
            limits=limits,
            verify=context,
            follow_redirects=False,
            transport=http_transport,
            trust_env=False,
            mounts=mounts,
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        reason = type(error).__name__
    # The type alone: the proxy's address may hold a password.
    raise ConfigurationError(f"the proxy settings of the environment cannot be used ({reason})")


@cache
def user_agent() -> str:
    """``bt-tui/<version> (Python/<version>; <system>)``."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"bt-tui/{__version__} (Python/{python}; {sys.platform})"


def _trusting_context() -> ssl.SSLContext:
    """The usual certificates, or those that ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigurationError(f"the certificates to trust cannot be read (SSL_CERT_FILE?): {reason}")


def _trusting_nobody() -> ssl.SSLContext:
    """For clients that never speak TLS: verifies, has nobody to trust, and is made in no time."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
