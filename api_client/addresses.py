"""Parse server addresses, and check addresses that servers name: presigned URLs, stores, SSH proxies.

A remote server must not be able to direct us to services of this machine or its network, which trust local
clients. The check applies to the IP address that is connected to: names are resolved here, and the connection
is made to a checked address (``Destinations``). ``BaseUrl`` and ``parse_url`` are also used for
the URLs of the API itself.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from api_client.errors import AddressRefused, ApiClientError, ConfigurationError

THIS_MACHINE = "on this machine"
_NETWORKS_BY_KIND: dict[str, str] = {
    # Most specific network first.
    "a cloud's metadata service": "169.254.169.254 169.254.170.2 192.0.0.192 100.100.100.200 168.63.129.16"
    " fd00:ec2::/32 fd20:ce::/32",
    THIS_MACHINE: "127.0.0.0/8 ::1",
    "in a private network": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    # VPNs and sandboxes use the next two kinds of networks: Tailscale the first, others the second.
    "in a provider's shared network": "100.64.0.0/10",
    "in a network for tests": "198.18.0.0/15 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32",
    "a link-local address": "169.254.0.0/16 fe80::/10",
    "a multicast address": "224.0.0.0/4 ff00::/8",
    "an unspecified address": "0.0.0.0/8 ::",
    "a reserved address": "192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23 2002::/16 3fff::/20",
}
_NETWORKS = [(ip_network(text), kind) for kind, texts in _NETWORKS_BY_KIND.items() for text in texts.split()]
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def _network_kind(text: str) -> str:
    """Return the kind of network that an IP address is in; empty for the public internet."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return "a reserved address" if _network_kind(str(IPv4Address(int(address) & 0xFFFFFFFF))) else ""
        address = address.ipv4_mapped or address
    for network, kind in _NETWORKS:
        if address in network:  # False for an address of another IP version
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return "a reserved address"
    return THIS_MACHINE if _is_own_address(text) else ""


def _is_own_address(address: str) -> bool:
    """Return True if the IP address belongs to this machine.

    Connecting a UDP socket sends no packet: it only selects a route.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, DEFAULT_PORTS["https"]))
            return ip_address(probe.getsockname()[0]) == ip_address(address)
    except OSError:
        return False


class Destinations:
    """Decides which addresses may be connected to when a remote names them.

    Public internet addresses are always allowed. Addresses of this machine or a private network are allowed
    only if the remote itself is in the same place, according to the address in its settings or the address
    that its responses came from. ``networks`` tells another process where the remote is.
    """

    def __init__(self, hosts: Iterable[str] = (), networks: Iterable[str] = ()) -> None:
        self._networks = set(filter(_is_private, networks))
        for host in hosts:
            self.remote_is_at(host)

    @property
    def networks(self) -> tuple[str, ...]:
        """Kinds of networks that the remote is in (see ``_NETWORKS_BY_KIND``), except the public internet."""
        return tuple(sorted(self._networks))

    def remote_is_at(self, address: str) -> None:
        """Note which private network an IP address of the remote is in.

        Host names do not count: their owners decide how they resolve.
        """
        with suppress(ValueError):
            kind = THIS_MACHINE if is_loopback(address) else _network_kind(address)
            if _is_private(kind):
                self._networks.add(kind)

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the IP addresses to connect to. Raises AddressRefused, or OSError for an unknown name."""
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

    def _check(self, host: str, address: str) -> None:
        kind = _network_kind(address)
        if kind and kind not in self._networks:
            destination = host if host == address else f"{host} ({address})"
            contrast = ", but the server that named it is not" if _is_private(kind) else ""
            raise AddressRefused(f"not connected to {destination}: it is {kind}{contrast}")


def _is_private(kind: str) -> bool:
    return kind.startswith(("on ", "in "))


DEFAULT_PORTS = {"http": 80, "https": 443}  # default ports of the supported schemes


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
        """The host as written in URLs: IPv6 addresses in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def netloc(self) -> str:
        """``host`` or ``host:port``, as used in messages and Host headers."""
        has_default_port = self.port == DEFAULT_PORTS[self.scheme]
        return self.url_host if has_default_port else f"{self.url_host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port. A redirect is followed, with the key, only within one origin."""
        return (self.scheme, self.host, self.port)

    @property
    def proxy(self) -> str:
        """The environment's proxy for this server; empty without a proxy, and for this machine."""
        from urllib.request import (  # not needed to choose a remote, and slow to import
            getproxies,
            proxy_bypass,
        )

        if self.is_loopback or proxy_bypass(self.host):
            return ""
        proxies = getproxies()
        proxy = proxies.get(self.scheme) or proxies.get("all") or ""
        return proxy if "://" in proxy or not proxy else f"http://{proxy}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.prefix}"


def parse_base_url(text: str, *, source: str) -> BaseUrl:
    """Parse a base URL; ``source`` names the setting (a variable, a section of a file) in errors.

    Raises ConfigurationError if the text is not a plain http or https URL, and for http to another machine,
    which would send the key unencrypted.
    """
    url, split_url = parse_url(text.strip(), source=source, error=ConfigurationError)
    if split_url.query or split_url.fragment:
        raise ConfigurationError(f"{source} must not contain ? or #")
    return replace(url, prefix=split_url.path.rstrip("/"))


def parse_url(text: str, *, source: str, error: type[ApiClientError]) -> tuple[BaseUrl, SplitResult]:
    """Parse a URL; return its server and its parts. ``source`` names the setting in errors.

    Raises ``error`` for schemes other than https (plain http only to this machine), for an invalid host or
    port, for characters that are invalid in a URL, and for credentials, which would be sent to the server.
    """
    is_readable = text.isascii() and text.isprintable() and " " not in text and "\\" not in text
    try:
        split_url = urlsplit(text if is_readable else "")
        host, port = (split_url.hostname or "").rstrip("."), split_url.port
        is_usable = split_url.scheme in DEFAULT_PORTS and port != 0 and is_host(host)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise error(f"{source} has an invalid host: expected one like https://app.baseten.co")
    if split_url.username is not None or split_url.password is not None:
        raise error(f"{source} contains a user name or password")
    url = BaseUrl(split_url.scheme, host, port or DEFAULT_PORTS[split_url.scheme])
    if url.scheme == "http" and not url.is_loopback:
        raise error(f"{source} is http://{url.netloc}: plain http is only for this machine; use https")
    return url, split_url


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
    """Return True if the text is a host name, or an IP address in its usual notation."""
    # The last label of a name never begins with a digit. Without this check, 127.1 or 0x7f000001 would be a
    # name here, but an address for the system's resolver.
    if ":" not in host and not host.rpartition(".")[2][:1].isdigit():
        return re.fullmatch(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?", host, re.ASCII) is not None
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
