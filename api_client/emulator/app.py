"""The emulator's ASGI applications, one for the API and one for the object store, and their access control.

A page in the user's browser can send requests to loopback too, so there are two guards besides the key: the
``Host`` must name this machine (a rebound DNS name does not), and a request with the ``Origin`` of another
site is refused.
"""

from __future__ import annotations

import hmac
import logging
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.emulator.answers import ApiFault, fault_answer, xml_fault
from api_client.emulator.platform import Platform
from api_client.emulator.routes import account, deployments, files, graphql, jobs, objects, projects, sessions

LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost", "api.localhost"})
"""The official command line turns ``http://localhost:8000`` into ``api.localhost`` (API facts, 4)."""

KEYED_PREFIXES = ("/v1/", "/graphql", "/emulator/")
"""Paths that require the key. Uploads and presigned URLs carry their own credentials."""

AUTH_SCHEMES = ("bearer", "api-key")


class AbsoluteTargets:
    """Accepts proxy-style requests, ``GET http://host/path HTTP/1.1``.

    The host in the target replaces the Host header.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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


class RequireLocalHost:
    """Refuses requests for another host name and requests from another site's page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = _foreign(Headers(scope=scope)) if scope["type"] == "http" else None
        if fault is not None:
            await fault_answer(fault)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _foreign(headers: Headers) -> ApiFault | None:
    host = headers.get("host", "")
    if _host_name(host) not in LOCAL_HOSTS:
        return ApiFault(403, "FORBIDDEN", "the emulator accepts only requests to this machine's loopback")
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{host}".lower():
        return ApiFault(403, "FORBIDDEN", "the emulator refuses web pages of other origins")
    return None


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


class RequireKey:
    """Answers 401 unless the request carries the emulator's key as Bearer or Api-Key."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            return "invalid API key"
        return None


logger = logging.getLogger(__name__)


class RejectSecondCredentials:
    """Refuses requests that carry both a key and a signed URL, with the error that S3 returns.

    This catches clients that send their key to every URL.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and any(name == b"authorization" for name, _value in scope["headers"]):
            words = "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature "
            words += "query string parameter or the Authorization header should be specified"
            await xml_fault(400, "InvalidArgument", words)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def build_objects_app(platform: Platform) -> Starlette:
    app = Starlette(
        routes=[*files.FILES_ROUTES, *objects.READING_ROUTES],
        middleware=[
            Middleware(AbsoluteTargets),
            Middleware(RequireLocalHost),
            Middleware(RejectSecondCredentials),
        ],
        exception_handlers={HTTPException: _answer_object_exception, Exception: _answer_unexpected_object},
    )
    app.router.redirect_slashes = False
    app.state.platform = platform
    return app


async def _answer_object_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return xml_fault(404, "NoSuchBucket", "The specified bucket does not exist")
    return xml_fault(error.status_code, "MethodNotAllowed", "The specified method is not allowed here.")


async def _answer_unexpected_object(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return xml_fault(500, "InternalError", "We encountered an internal error. Please try again.")


FAULT_CODES = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}


def build_app(platform: Platform, *, key: str) -> Starlette:
    """Build the application for a platform. The caller starts and closes the platform."""
    app = Starlette(
        routes=[
            *projects.PROJECTS_ROUTES,
            *jobs.JOBS_ROUTES,
            *sessions.SESSIONS_ROUTES,
            *account.CAPACITY_ROUTES,
            *account.ACCOUNT_ROUTES,
            *deployments.MODELS_ROUTES,
            *deployments.DEPLOYMENT_LOGS_ROUTES,
            *graphql.GRAPHQL_ROUTES,
            *objects.OBJECTS_ROUTES,
            *files.FILES_ROUTES,
            *files.PAGES_ROUTES,
            *account.CONTROL_ROUTES,
        ],
        middleware=[
            Middleware(AbsoluteTargets),
            Middleware(RequireLocalHost),
            Middleware(RequireKey, key),
        ],
        exception_handlers={
            ApiFault: _answer_fault,
            HTTPException: _answer_http_exception,
            Exception: _answer_unexpected,
        },
    )
    app.router.redirect_slashes = False
    app.state.platform = platform
    return app


async def _answer_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiFault)
    return fault_answer(error)


async def _answer_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = FAULT_CODES.get(error.status_code, "ERROR")
    message = f"{request.method} {request.url.path}: {error.detail}"
    return fault_answer(ApiFault(error.status_code, code, message))


async def _answer_unexpected(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return fault_answer(ApiFault(500, "INTERNAL_ERROR", "the emulator failed; see its log"))
