"""Parse server addresses, and check the ones that a server names: presigned URLs, stores, SSH proxies.

A remote server must not be able to direct us to services of this machine or its network, which trust local
clients. The check applies to the address that is connected to, so names are resolved here and the connection
is made to a checked address (``Destinations``). ``BaseUrl`` and ``route`` build the URLs of the API itself.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from api_client.errors import AddressRefused, ConfigurationError

THIS_MACHINE = "this machine"
PRIVATE = "a private network"
SHARED = "a provider's shared network"
TESTS = "a network for tests"
_REACHABLE_IF_REMOTE_IS_THERE = frozenset({THIS_MACHINE, PRIVATE, SHARED, TESTS})
"""VPNs and sandboxes use the last two: Tailscale has shared addresses, others have test addresses."""

_METADATA = "a cloud's metadata service"
_RESERVED = "reserved"

_KINDS: dict[str, str] = {
    # Most specific network first.
    _METADATA: "169.254.169.254 169.254.170.2 192.0.0.192 100.100.100.200 168.63.129.16"
    " fd00:ec2::/32 fd20:ce::/32",
    THIS_MACHINE: "127.0.0.0/8 ::1",
    PRIVATE: "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    SHARED: "100.64.0.0/10",
    TESTS: "198.18.0.0/15 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32",
    "link-local": "169.254.0.0/16 fe80::/10",
    "multicast": "224.0.0.0/4 ff00::/8",
    "unspecified": "0.0.0.0/8 ::",
    _RESERVED: "192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23 2002::/16 3fff::/20",
}
_NETWORKS = [(ip_network(text), kind) for kind, texts in _KINDS.items() for text in texts.split()]
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def _kind_of(text: str) -> str:
    """Return the kind of an address; empty for the public internet, except for addresses of this machine."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return _RESERVED if _kind_of(str(IPv4Address(int(address) & 0xFFFFFFFF))) else ""
        address = address.ipv4_mapped or address
    for network, kind in _NETWORKS:
        if address in network:  # never one of another version
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return _RESERVED
    return THIS_MACHINE if _is_own(text) else ""


def _is_own(address: str) -> bool:
    """Return True if the address is one of this machine's own. Sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, DEFAULT_PORTS["https"]))
            return ip_address(probe.getsockname()[0]) == ip_address(address)
    except OSError:
        return False


def proxy_of(scheme: str, host: str) -> str:
    """Return the environment's proxy for this host; empty if none. This machine is never proxied."""
    if is_loopback(host) or proxy_bypass(host):
        return ""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


class Destinations:
    """Addresses that may be connected to when one remote names them.

    Public internet addresses are always allowed. Those of this machine or a private network are allowed
    only if the remote itself is there, according to the address in its settings or the one its answers
    came from. ``networks`` passes these places to another process.
    """

    def __init__(self, hosts: Iterable[str] = (), networks: Iterable[str] = ()) -> None:
        self._networks = set(networks) & _REACHABLE_IF_REMOTE_IS_THERE
        self._proxied: set[tuple[str, int]] = set()
        for host in hosts:
            self.remote_is_at(host)

    @property
    def networks(self) -> tuple[str, ...]:
        """Return the networks where the remote is, except the public internet."""
        return tuple(sorted(self._networks))

    def remote_is_at(self, address: str) -> None:
        """Record an address of the remote; names are ignored, because their owner decides where they lead."""
        try:
            kind = THIS_MACHINE if is_loopback(address) else _kind_of(address)
            self._networks |= {kind} & _REACHABLE_IF_REMOTE_IS_THERE
        except ValueError:
            return

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses to connect to. Raises AddressRefused, or OSError for an unknown name."""
        name = host.rstrip(".")
        if name.lower().endswith(".localhost"):
            name = "localhost"  # required by RFC 6761, but not every resolver supports it
        try:
            entries = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except UnicodeError:
            raise socket.gaierror(socket.EAI_NONAME, "no such name") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        for address in addresses:
            self._check(host, address)
        return addresses

    def check_proxied(self, host: str, port: int) -> None:
        """Check a name that a proxy will resolve, if it resolves here too. Raises AddressRefused."""
        if (host, port) in self._proxied:
            return
        with suppress(OSError):
            self.resolve(host, port)
        self._proxied.add((host, port))

    def _check(self, host: str, address: str) -> None:
        kind = _kind_of(address)
        if not kind or kind in self._networks:
            return
        where = host if host == address else f"{host} ({address})"
        if kind in _REACHABLE_IF_REMOTE_IS_THERE:
            where_is = f"on {kind}" if kind == THIS_MACHINE else f"in {kind}"
            why = f"it is {where_is}, but the server that named it is not"
        elif kind == _METADATA:
            why = f"it is {kind}"
        else:
            why = f"it is a {kind} address" if kind[0] not in "aeiou" else f"it is an {kind} address"
        raise AddressRefused(f"not connected to {where}: {why}")


DEFAULT_PORTS = {"http": 80, "https": 443}  # default ports of the supported schemes
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """Scheme, host, port and path prefix (without a trailing slash) of a server."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def url_host(self) -> str:
        """Return the host as written in URLs: IPv6 addresses in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def netloc(self) -> str:
        """Return ``host`` or ``host:port``, as used in messages and Host headers."""
        has_default_port = self.port == DEFAULT_PORTS[self.scheme]
        return self.url_host if has_default_port else f"{self.url_host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """Return the origin (scheme, host, port); the key is sent again only to the same origin."""
        return (self.scheme, self.host, self.port)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.prefix}"


def parse_base_url(text: str, *, source: str) -> BaseUrl:
    """Parse the base URL read from ``source`` (a variable, a section of a file).

    Raises ConfigurationError for anything but a plain http or https URL, and for http to any machine
    other than this one, which would send the key unencrypted.
    """
    parts = split_url(text.strip())
    if parts is None:
        raise ConfigurationError(
            f"{source} is not a usable address: expected one like https://app.baseten.co"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{source} contains a user name or password; remove it")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"{source} must not contain ? or #")
    url = BaseUrl(*host_and_port(parts), parts.path.rstrip("/"))
    if url.scheme == "http" and not url.is_loopback:
        raise ConfigurationError(
            f"{source} is http://{url.netloc}: keys are sent over plain http only to this machine; use https"
        )
    return url


def split_url(text: str) -> SplitResult | None:
    """Split an http or https URL; None if it has no valid host or port, or invalid characters."""
    is_readable = text.isascii() and text.isprintable() and " " not in text and "\\" not in text
    try:
        parts = urlsplit(text if is_readable else "")
        is_usable = parts.scheme in DEFAULT_PORTS and parts.port != 0 and is_host(host_and_port(parts)[1])
    except ValueError:
        return None
    return parts if is_usable else None


def host_and_port(parts: SplitResult) -> tuple[str, str, int]:
    """Return scheme, host and port of a split URL."""
    host = (parts.hostname or "").rstrip(".")
    return parts.scheme, host, parts.port or DEFAULT_PORTS[parts.scheme]


def is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine (including names under .localhost, RFC 6761)."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_host(host: str) -> bool:
    """Return True if the text is a host name, or an address in its usual notation."""
    # No name ends with a label that begins with a digit, but systems parse 127.1 and 0x7f000001 as addresses,
    # not all of them as the same one.
    if ":" not in host and not host.rpartition(".")[2][:1].isdigit():
        return _HOST_NAME.fullmatch(host) is not None
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
