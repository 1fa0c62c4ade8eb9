"""Connect to object stores: only to checked addresses, without any key, cookie or header of ours.

http.client runs in threads here instead of httpx on the event loop: it moves a byte with a third of httpx's
CPU time (``benchmarks/downloads.py``), and the dashboard runs on the loop.
"""

from __future__ import annotations

import asyncio
import base64
import select
import socket
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

import httpx

from api_client.addresses import DEFAULT_PORTS, BaseUrl, Destinations, host_and_port, proxy_of, split_url
from api_client.errors import ConfigurationError, InvalidAnswer, RedirectRefused, RequestError
from api_client.http.connection import CONNECT_TIMEOUT_S, trusting_context

READ_TIMEOUT_S = 30.0  # maximum time without data within a body; after that the connection counts as broken
_MIN_SECRET_LENGTH = 6
RELAY_BYTES = 64 * 1024


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


def open_socket(destinations: Destinations, scheme: str, host: str, port: int) -> socket.socket:
    """Connect to the first address of the host that answers, or through the environment's proxy.

    Raises AddressRefused, ConfigurationError for an unusable proxy, and TransportError.
    """
    if proxy := proxy_of(scheme, host):
        destinations.check_proxied(host, port)
        return _proxied_socket(proxy, host, port)
    try:
        problem = OSError(f"{host} has no address")
        for address in destinations.resolve(host, port):
            try:
                return socket.create_connection((address, port), CONNECT_TIMEOUT_S)
            except OSError as error:
                problem = error
        raise problem
    except TimeoutError as error:
        raise httpx.ConnectTimeout("no answer in time") from error
    except OSError as error:
        raise httpx.ConnectError("no connection") from error


class Connections:
    """Open connections, reused by scheme, host and port. Safe to use from several threads."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations
        self._idle: dict[tuple[str, str, int], list[HTTPConnection]] = defaultdict(list)
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def take(self, url: ObjectUrl) -> HTTPConnection:
        """Return a connection to the URL's host, for one user at a time.

        Raises AddressRefused, ConfigurationError for unusable proxies or certificates, and TransportError.
        """
        while True:
            with self._lock:
                idle = self._idle[url.scheme, url.host, url.port]
                connection = idle.pop() if idle else None
            if connection is None:
                return self._connected(url)
            if _is_silent(connection.sock):
                return connection
            connection.close()

    def give_back(self, url: ObjectUrl, connection: HTTPConnection) -> None:
        """Keep a connection whose last answer was read to its end for the next user."""
        with self._lock:
            if not self._is_closed and connection.sock is not None:
                self._idle[url.scheme, url.host, url.port].append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, defaultdict(list)
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _connected(self, url: ObjectUrl) -> HTTPConnection:
        tls = self._tls_context() if url.scheme == "https" else None
        connection = HTTPConnection(url.host, url.port)
        connection.auto_open = 0  # or http.client would connect again by itself, to an unchecked address
        connection.sock = open_socket(self._destinations, url.scheme, url.host, url.port)
        try:
            if tls is not None:
                connection.sock = tls.wrap_socket(connection.sock, server_hostname=url.host)
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no answer in time") from error
        except OSError as error:
            raise httpx.ConnectError("no TLS connection") from error
        connection.sock.settimeout(READ_TIMEOUT_S)
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        with self._lock:
            self._tls = self._tls or trusting_context()
            return self._tls


def _proxied_socket(proxy: str, host: str, port: int) -> socket.socket:
    parts = urlsplit(proxy)
    try:
        proxy_host, proxy_port = parts.hostname or "", parts.port or DEFAULT_PORTS["http"]
    except ValueError:
        proxy_host = ""
    if not proxy_host or parts.scheme != "http":
        # The proxy's address may contain a password.
        raise ConfigurationError("unusable proxy in the environment: expected one like http://host:port")
    headers = {}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    connection = HTTPConnection(proxy_host, proxy_port, timeout=CONNECT_TIMEOUT_S)
    connection.set_tunnel(host, port, headers)
    try:
        connection.connect()
    except (HTTPException, OSError) as error:
        connection.close()
        raise httpx.ProxyError("the proxy refused the connection") from error
    return connection.sock


def _is_silent(idle: socket.socket) -> bool:
    """Return True if nothing arrived on the idle connection: neither its end nor bytes nobody asked for."""
    poll = select.poll()
    poll.register(idle, select.POLLIN)
    return not poll.poll(0)


@dataclass
class Tunnel:
    """A relay on loopback through which obstore reaches checked addresses only.

    obstore resolves names itself, would connect to wherever they lead, and has its own idea of the
    environment's proxies. The relay listens on ``url``, and connects whoever asks to ``endpoint``: for https
    it is an HTTP proxy (CONNECT; TLS stays between obstore and the store), for http it relays every byte.
    ``on_sent`` is called with the number of bytes sent to the store.
    """

    endpoint: BaseUrl
    destinations: Destinations
    on_sent: Callable[[int], object]
    host: str = ""
    url: str = ""
    _relays: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{self.host}:{port}"

    async def aclose(self) -> None:
        self._server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        endpoint = self.endpoint
        connected = await asyncio.to_thread(
            open_socket, self.destinations, endpoint.scheme, endpoint.host, endpoint.port
        )
        connected.setblocking(False)
        return await asyncio.open_connection(sock=connected, limit=RELAY_BYTES)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, httpx.TransportError, RequestError):
                if self.endpoint.scheme == "https":
                    await reader.readuntil(b"\r\n\r\n")
                answers, upstream = await self._connect()
                if self.endpoint.scheme == "https":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, upstream, self.on_sent))
                    group.create_task(_copy(answers, writer, lambda _size_bytes: None))
        finally:
            for each in (writer, upstream):
                if each is not None:
                    each.close()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_copied: Callable[[int], object]
) -> None:
    """Copy until the end, then end the other side's stream, too."""
    with suppress(OSError):
        while chunk := await reader.read(RELAY_BYTES):
            writer.write(chunk)
            await writer.drain()
            on_copied(len(chunk))
    writer.close()
