"""Who may talk to the emulator: programs of this machine that hold its key, and no web page.

A page in the user's browser can send requests to loopback too, so besides the key there are two guards:
the ``Host`` must name this machine (a rebound DNS name does not), and a request that carries the
``Origin`` of another site is refused.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.emulator.answers import fault_answer
from api_client.emulator.faults import ApiFault

LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost", "api.localhost"})
"""``api.localhost`` is what the official command line makes of ``http://localhost:8000`` (API facts, 4)."""

KEYED_PREFIXES = ("/v1/", "/graphql", "/emulator/")
"""Paths that need the key. Uploads and presigned URLs carry credentials of their own."""

AUTH_SCHEMES = ("bearer", "api-key")


class AbsoluteTargets:
    """Accepts ``GET http://host/path HTTP/1.1``, as clients send it to a proxy: the target's host rules."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make the target a path again."""
        if scope["type"] == "http" and not scope["path"].startswith("/"):
            target = scope["raw_path"].decode("ascii", "replace")
            authority = urlsplit(target).netloc
            prefix = len(target) - len(target.split("://", 1)[-1]) + len(authority)
            headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
            scope = {
                **scope,
                "raw_path": scope["raw_path"][prefix:] or b"/",
                "path": scope["path"][prefix:] or "/",
                "headers": [(b"host", authority.encode()), *headers],
            }
        await self._app(scope, receive, send)


class LocalOnly:
    """Refuses what was not meant for this machine, or comes from another site's page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check where the request was meant to go and where it comes from."""
        fault = _foreign(Headers(scope=scope)) if scope["type"] == "http" else None
        if fault is not None:
            await fault_answer(fault)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _foreign(headers: Headers) -> ApiFault | None:
    host = headers.get("host", "")
    if _host_name(host) not in LOCAL_HOSTS:
        return ApiFault(403, "FORBIDDEN", "the emulator answers requests to this machine's loopback only")
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{host}".lower():
        return ApiFault(403, "FORBIDDEN", "the emulator answers no web page of another origin")
    return None


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


class KeyRequired:
    """Answers 401 unless the request carries the emulator's key, as Bearer or Api-Key."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key."""
        if scope["type"] == "http" and scope["path"].startswith(KEYED_PREFIXES):
            problem = self._problem(Headers(scope=scope).get("authorization"))
            if problem is not None:
                await fault_answer(ApiFault(401, "UNAUTHORIZED", problem))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _problem(self, authorization: str | None) -> str | None:
        if not authorization:
            return "an API key is required: Authorization: Bearer <key>"
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() not in AUTH_SCHEMES:
            return "unknown authorization scheme; use Bearer or Api-Key"
        if not hmac.compare_digest(given.strip().encode(errors="replace"), self._key):
            return "the API key is not valid here"
        return None
