"""The emulator's ASGI applications, one for the API and one for the object store, and their access control.

A page in the user's browser can send requests to loopback too, so there are two guards besides the key: the
``Host`` must name this machine (a rebound DNS name does not), and a request with the ``Origin`` of another
site is refused.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.emulator.answers import ApiFault, fault_answer, xml_fault
from api_client.emulator.platform import Platform
from api_client.emulator.routes import account, deploying, deployments, files, jobs

LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost", "api.localhost"})
"""The official command line turns ``http://localhost:8000`` into ``api.localhost``."""

KEYED_PREFIXES = ("/v1/", "/graphql")
"""Paths that require the key. Uploads and presigned URLs carry their own credentials."""


Check = Callable[[str, Headers], Response | None]
"""Returns the refusal of a request with this path and these headers, or None."""


class RequestChecks:
    """Answers requests that one of the checks refuses, and accepts proxy-style ones.

    In ``GET http://host/path HTTP/1.1`` the host in the target replaces the Host header.
    """

    def __init__(self, app: ASGIApp, checks: Sequence[Check]) -> None:
        self._app = app
        self._checks = checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = _with_relative_target(scope)
            for check in self._checks:
                refusal = check(scope["path"], Headers(scope=scope))
                if refusal is not None:
                    await refusal(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def _with_relative_target(scope: Scope) -> Scope:
    if scope["path"].startswith("/"):
        return scope
    target = scope["raw_path"].decode("ascii", "replace")
    authority = urlsplit(target).netloc
    prefix = len(target) - len(target.split("://", 1)[-1]) + len(authority)
    headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
    return {
        **scope,
        "raw_path": scope["raw_path"][prefix:] or b"/",
        "path": scope["path"][prefix:] or "/",
        "headers": [(b"host", authority.encode()), *headers],
    }


def require_local_host(_path: str, headers: Headers) -> Response | None:
    """Refuse requests for another host name and requests from another site's page."""
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
    return fault_answer(ApiFault(403, "FORBIDDEN", problem))


def require_key(key: str, path: str, headers: Headers) -> Response | None:
    """Answer 401 unless the request carries the emulator's key as Bearer or Api-Key."""
    if not path.startswith(KEYED_PREFIXES):
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
    return fault_answer(ApiFault(401, "UNAUTHORIZED", problem))


def reject_second_credentials(_path: str, headers: Headers) -> Response | None:
    """Refuse requests that carry both a key and a signed URL, with the error that S3 returns.

    This catches clients that send their key to every URL.
    """
    if "authorization" not in headers:
        return None
    problem = "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature "
    problem += "query string parameter or the Authorization header should be specified"
    return xml_fault(400, "InvalidArgument", problem)


logger = logging.getLogger(__name__)

FAULT_CODES = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 500: "INTERNAL_ERROR"}
OBJECT_ERRORS = {
    404: ("NoSuchBucket", "The specified bucket does not exist"),
    405: ("MethodNotAllowed", "The specified method is not allowed here."),
    500: ("InternalError", "We encountered an internal error. Please try again."),
}
ErrorAnswer = Callable[[int, str], Response]
"""Returns the answer for an HTTP status and a message for humans."""


def build_objects_app(platform: Platform) -> Starlette:
    return _app(
        platform,
        files.READING_ROUTES,
        [require_local_host, reject_second_credentials],
        lambda status, _: xml_fault(status, *OBJECT_ERRORS.get(status, OBJECT_ERRORS[405])),
    )


def build_app(platform: Platform, *, key: str) -> Starlette:
    """Build the application for a platform. The caller starts and closes the platform."""
    modules = (account, deploying, deployments, files, jobs)
    return api_app(platform, [route for module in modules for route in module.ROUTES], key=key)


def api_app(platform: Platform, routes: list[Route], *, key: str) -> Starlette:
    """Build an application with these routes for clients that have the key."""
    return _app(
        platform,
        routes,
        [require_local_host, partial(require_key, key)],
        lambda status, message: fault_answer(ApiFault(status, FAULT_CODES.get(status, "ERROR"), message)),
    )


def _app(platform: Platform, routes: list[Route], checks: Sequence[Check], answer: ErrorAnswer) -> Starlette:
    async def answer_error(request: Request, error: Exception) -> Response:
        if isinstance(error, ApiFault):
            return fault_answer(error)
        if isinstance(error, ClientDisconnect):
            return Response()  # which nobody receives
        if isinstance(error, HTTPException):
            return answer(error.status_code, f"{request.method} {request.url.path}: {error.detail}")
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return answer(500, "the emulator failed; see its log")

    app = Starlette(
        routes=routes,
        middleware=[Middleware(RequestChecks, checks)],
        exception_handlers=dict.fromkeys(
            (ApiFault, ClientDisconnect, HTTPException, Exception), answer_error
        ),
    )
    app.router.redirect_slashes = False
    app.state.platform = platform
    return app
