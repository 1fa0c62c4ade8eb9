"""Addresses: which hosts are this machine, which base URLs are usable, how ids become paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from api_client.errors import ConfigurationError, RequestError

DEFAULT_PORTS = {"http": 80, "https": 443}
"""Ports of the schemes we speak."""
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII | re.IGNORECASE)
_OCTET = r"(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_IPV4 = re.compile(rf"{_OCTET}(\.{_OCTET}){{3}}", re.ASCII)
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """Scheme, host, port and path prefix (no slash at its end) of a server."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        return is_loopback(self.host)

    @property
    def url_host(self) -> str:
        """The host as it stands in URLs: IPv6 addresses in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def netloc(self) -> str:
        """``host`` or ``host:port``, as messages and Host headers name it."""
        has_default_port = self.port == DEFAULT_PORTS[self.scheme]
        return self.url_host if has_default_port else f"{self.url_host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What must be the same for a key to be sent again."""
        return (self.scheme, self.host, self.port)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.prefix}"


def parse_base_url(text: str, *, source: str) -> BaseUrl:
    """Read the base URL that ``source`` (a variable, a file's section) gives.

    Raises ConfigurationError for anything but a plain http or https URL, and for http to any machine
    but this one: a key would travel readably.
    """
    text = text.strip()
    readable = text.isascii() and text.isprintable() and " " not in text and "\\" not in text
    try:
        parts = urlsplit(text if readable else "")
        port = parts.port
    except ValueError:
        readable, parts, port = False, urlsplit(""), None
    host = (parts.hostname or "").rstrip(".")
    if not readable or parts.scheme not in DEFAULT_PORTS or not is_host(host) or port == 0:
        raise ConfigurationError(
            f"{source} is no usable address: it must look like https://app.baseten.co (http or https, a host)"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{source} holds a user name or password; an address alone belongs there")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"{source} must end with its path: no ? and no #")
    url = BaseUrl(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"))
    if url.scheme == "http" and not url.is_loopback:
        raise ConfigurationError(
            f"{source} is http://{url.netloc}: a key goes over plain http to this machine only, use https"
        )
    return url


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine (names under .localhost are, by RFC 6761)."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_host(host: str) -> bool:
    """Return whether this is a host name, or an address in its usual spelling."""
    if ":" in host:
        try:
            ip_address(host)
        except ValueError:
            return False
        return True
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # Systems read 127.1 and 0x7f000001 as addresses, and not all of them as the same.
        return _IPV4.fullmatch(host) is not None
    return _HOST_NAME.fullmatch(host) is not None


def route(*segments: str) -> str:
    """A path of the API's version 1 with every segment escaped: ids are data, whatever they hold.

    Raises RequestError for segments that would change which route it is.
    """
    for segment in segments:
        if segment in ("", ".", ".."):
            raise RequestError(f"{segment!r} is no id", path="/v1/" + "/".join(segments))
    return "/v1/" + "/".join(quote(segment, safe="", errors="replace") for segment in segments)
