"""Who may reach the dashboard in the browser: this page of this person, and nobody else's.

A page of another site can make a browser send requests here, and can open a websocket, which no browser
keeps from it. So every request must name this server (DNS rebinding) and come from its own page (Origin).
On loopback it must also come from a process of the same person, where the system tells (Linux); anywhere
else it must bring the pass that the printed address holds.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

PASS_PARAMETER = "pass"
PASS_COOKIE = "bt-tui-pass"
PASS_BYTES = 24
ROOT_UID = 0
SOCKET_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

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
"""A page of another site may not frame it; nothing is fetched from anywhere else."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses what must not drive the dashboard; ``names`` are host names that this server goes by.

    ``pass_word`` None asks for none, which is for loopback.
    """

    def __init__(self, names: Iterable[str], pass_word: str | None = None) -> None:
        self._names = {name.lower() for name in names}
        self.pass_word = pass_word

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Look at a request before anything else does."""
        if not self._knows(request.host):
            raise web.HTTPForbidden(text="This server does not go by that name.\n", headers=HEADERS)
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != request.host.lower():
            raise web.HTTPForbidden(text="Another site's page may not use this server.\n", headers=HEADERS)
        if self.pass_word is None:
            if not same_person(request):
                raise web.HTTPForbidden(text="Another user of this machine serves this.\n", headers=HEADERS)
        else:
            self._check_pass(request, self.pass_word)
        return await handler(request)

    def _knows(self, host: str) -> bool:
        """A name that we gave ourselves, or an address: rebinding needs a name of somebody else's."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    @staticmethod
    def _check_pass(request: web.Request, pass_word: str) -> None:
        given = request.query.get(PASS_PARAMETER)
        if given is not None and secrets.compare_digest(given.encode(), pass_word.encode()):
            answer = web.HTTPSeeOther("/", headers=HEADERS)
            answer.set_cookie(PASS_COOKIE, pass_word, httponly=True, samesite="Strict", path="/")
            raise answer
        kept = request.cookies.get(PASS_COOKIE, "")
        if not secrets.compare_digest(kept.encode(), pass_word.encode()):
            raise web.HTTPForbidden(
                text="Open the whole address that bt-tui serve printed.\n", headers=HEADERS
            )


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Say with every answer what the browser may do with it."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def same_person(request: web.Request) -> bool:
    """Whether the other end of a loopback connection is ours or root's; so it is taken if nobody can tell."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    own_uid = getattr(os, "getuid", lambda: None)()
    if peer is None or own_uid is None:
        return True
    uid = owner_of(peer[0], peer[1])
    return uid is None or uid in (own_uid, ROOT_UID)


def owner_of(host: str, port: int) -> int | None:
    """The user whose socket has that address, as Linux lists this machine's (proc(5)); None if unknown."""
    address = ipaddress.ip_address(host)
    packed = address.packed
    words = [packed[start : start + 4][::-1] for start in range(0, len(packed), 4)]
    wanted = f"{b''.join(words).hex()}:{port:04x}".upper()
    try:
        lines = SOCKET_TABLES[address.version == 6].read_text(encoding="ascii").splitlines()[1:]
    except (OSError, ValueError):
        return None
    for line in lines:
        fields = line.split()
        if len(fields) > 7 and fields[1] == wanted:
            return int(fields[7])
    return None
