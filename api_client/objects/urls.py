"""Which presigned URLs are followed, and whither they may redirect."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urljoin, urlsplit

from api_client.addresses import DEFAULT_PORTS, is_host, is_loopback
from api_client.errors import InvalidAnswer, RedirectRefused

_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    """A URL in the pieces that a connection needs; ``target`` is path and query, exactly as they came."""

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
        """Whether it leads to this machine."""
        return is_loopback(self.host)

    def without_secrets(self, text: str) -> str:
        """``text`` without the values of the URL's query, which are what opens the object."""
        for _name, value in parse_qsl(urlsplit(self.text).query):
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, "[secret]")
        return text


def parse_object_url(text: str) -> ObjectUrl:
    """Take a presigned URL apart.

    Raises InvalidAnswer for anything but https (plain http to this machine alone), for credentials in
    the address, which would be sent as such, and for characters that no URL has.
    """
    problem = ""
    try:
        readable = text.isascii() and text.isprintable() and " " not in text and "\\" not in text
        parts = urlsplit(text if readable else "")
        host = (parts.hostname or "").rstrip(".")
        port = parts.port
    except ValueError:
        raise InvalidAnswer("a file's URL cannot be read") from None
    if parts.scheme not in DEFAULT_PORTS or not host or port == 0:
        problem = "a file's URL is no http or https URL"
    elif parts.username is not None or parts.password is not None:
        problem = f"a file's URL holds a user name ({host}); presigned URLs hold none"
    elif not is_host(host):
        problem = f"a file's URL has no usable host: {host[:100]!r}"
    elif parts.scheme == "http" and not is_loopback(host):
        problem = f"a file's URL is http://{host}: it would travel readably; only https is fetched"
    if problem:
        raise InvalidAnswer(problem)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.startswith("/"):
        target = "/" + target
    return ObjectUrl(text, parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], target)


def redirected(url: ObjectUrl, location: str | None) -> ObjectUrl:
    """Where a redirect leads. Nothing secret travels but what the new URL itself holds.

    Object stores do this when a bucket lies in another region. Raises RedirectRefused for a target that is
    no usable URL, less protected than the first, or on this machine while the first was not.
    """
    try:
        target = parse_object_url(urljoin(url.text, location or ""))
    except (InvalidAnswer, ValueError):
        target = None
    if not location or target is None:
        raise RedirectRefused(f"{url.netloc} redirected to no usable address", method="GET")
    if target.is_loopback and not url.is_loopback:
        raise RedirectRefused(f"{url.netloc} redirected to this machine; not followed", method="GET")
    return target
