"""The emulator's ASGI application and its access control.

A page in the user's browser can send requests to loopback, too. Therefore there are two guards besides the
key: the ``Host`` must name this machine (which rules out a rebound DNS name), and a request with the
``Origin`` of another site is refused.
"""

from __future__ import annotations

import hmac
import logging
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.emulator.platform import Platform
from api_client.emulator.responses import ApiFault, fault_response
from api_client.emulator.routes import account, deployments, files, jobs

LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost", "api.localhost"})
"""Host names of this machine; the official CLI turns ``http://localhost`` into ``http://api.localhost``."""


class RequestGuard:
    """Refuses unauthorized requests, and accepts requests in proxy form.

    In ``GET http://host/path HTTP/1.1``, the host in the target replaces the Host header.
    """

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = _with_relative_target(scope)
            headers = Headers(scope=scope)
            refusal = host_fault(headers) or key_fault(self._key, scope["path"], headers)
            if refusal is not None:
                await fault_response(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _with_relative_target(scope: Scope) -> Scope:
    """Rewrite a request in proxy form to ``GET /path`` with the target's host as its Host header."""
    if scope["path"].startswith("/"):
        return scope
    target = scope["raw_path"].decode("ascii", "replace")
    authority = urlsplit(target).netloc
    prefix_length = len(target) - len(target.split("://", 1)[-1]) + len(authority)
    headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
    return {
        **scope,
        "raw_path": scope["raw_path"][prefix_length:] or b"/",
        "path": scope["path"][prefix_length:] or "/",
        "headers": [(b"host", authority.encode()), *headers],
    }


def host_fault(headers: Headers) -> ApiFault | None:
    """Return the error for a request to another host, or from another site's page; else None."""
    host, origin = headers.get("host", ""), headers.get("origin")
    try:
        is_local = urlsplit(f"//{host}").hostname in LOCAL_HOSTS
    except ValueError:
        is_local = False
    if not is_local:
        problem = "the emulator accepts only requests to this machine's loopback"
    elif origin is not None and origin.lower() != f"http://{host}".lower():
        problem = "the emulator refuses web pages of other origins"
    else:
        return None
    return ApiFault(403, "FORBIDDEN", problem)


def key_fault(key: str, path: str, headers: Headers) -> ApiFault | None:
    """Return a 401 if the request lacks the emulator's key (as Bearer or Api-Key), else None."""
    # Uploads and presigned URLs carry their own credentials.
    if not path.startswith(("/v1/", "/graphql", "/emulator/")):
        return None
    scheme, _, sent_key = headers.get("authorization", "").partition(" ")
    if not scheme:
        problem = "an API key is required: Authorization: Bearer <key>"
    elif scheme.lower() not in ("bearer", "api-key"):
        problem = "unknown authorization scheme; use Bearer or Api-Key"
    elif not hmac.compare_digest(sent_key.strip().encode(errors="replace"), key.encode()):
        problem = "invalid API key"
    else:
        return None
    return ApiFault(401, "UNAUTHORIZED", problem)


logger = logging.getLogger(__name__)

CODES_BY_HTTP_STATUS = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}


def build_app(platform: Platform, *, key: str) -> Starlette:
    """Build the application for clients that have the key. The caller starts and closes the platform."""
    error_types = (ApiFault, ClientDisconnect, HTTPException, Exception)
    app = Starlette(
        routes=[*account.ROUTES, *deployments.ROUTES, *files.ROUTES, *jobs.ROUTES],
        middleware=[Middleware(RequestGuard, key)],
        exception_handlers=dict.fromkeys(error_types, _error_response),
    )
    app.router.redirect_slashes = False
    app.state.platform = platform
    return app


async def _error_response(request: Request, error: Exception) -> Response:
    if isinstance(error, ApiFault):
        return fault_response(error)
    if isinstance(error, ClientDisconnect):
        return Response()  # never sent, because the client has disconnected
    if isinstance(error, HTTPException):
        message = f"{request.method} {request.url.path}: {error.detail}"
        return fault_response(
            ApiFault(error.status_code, CODES_BY_HTTP_STATUS.get(error.status_code, "ERROR"), message)
        )
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return fault_response(ApiFault(500, "INTERNAL_ERROR", "the emulator failed; see its log"))
