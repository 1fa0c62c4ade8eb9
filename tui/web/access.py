"""Admit a browser to the dashboard only with the token in the printed address.

The token is also required on loopback: other users of the machine can connect there, and a connection does
not reliably identify its user. The browser keeps the token in a cookie below a path known only to this server
and the browser: cookies are shared between all ports of a host, and another user's server may listen on one
of them. Requests must also name this server (DNS rebinding) and come from its own page (Origin).
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlsplit

from aiohttp import web

TOKEN_PARAMETER = "token"
COOKIE_NAME = "bt-tui"
NO_TOKEN_MESSAGE = (
    "Open this dashboard with the full address that bt-tui serve printed, including its token.\n"
    "Copy it from the terminal into the address bar; links on other sites don't work.\n"
    "bt-tui serve creates a new token at every start.\n"
)

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self';"
        " img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none';"
        " form-action 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Security headers: other sites cannot embed the page in a frame, and it loads nothing from other sites."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AccessGuard:
    """Refuses requests that must not reach the dashboard; ``host_names`` are the names of this server."""

    def __init__(self, host_names: Iterable[str]) -> None:
        self._host_names = {name.lower() for name in host_names}
        self.token = secrets.token_urlsafe(24)
        self.root = f"/{secrets.token_urlsafe(24)}/"
        """Path of the page, unguessable; everything that the page loads is below this path."""

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._is_allowed_host(request.host):
            raise web.HTTPForbidden(text="Unknown host name.\n", headers=HEADERS)
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2].lower() != request.host.lower():
            raise web.HTTPForbidden(text="Requests from other sites are not allowed.\n", headers=HEADERS)
        if self._is_token(request.query.get(TOKEN_PARAMETER, "")):
            # The token must not stay in the address, which is displayed, stored in the history and shared.
            redirect = web.HTTPSeeOther(self.root, headers=HEADERS)
            redirect.set_cookie(COOKIE_NAME, self.token, httponly=True, samesite="Strict", path=self.root)
            raise redirect
        if not self._is_token(request.cookies.get(COOKIE_NAME, "")):
            raise web.HTTPForbidden(text=NO_TOKEN_MESSAGE, headers=HEADERS)
        return await handler(request)

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(errors="replace"), self.token.encode())

    def _is_allowed_host(self, host: str) -> bool:
        """Return True for this server's host names and for IP addresses: DNS rebinding needs another name."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._host_names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
