"""The object store's own face: presigned URLs, and nothing else of the emulator."""

from __future__ import annotations

import logging

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.emulator.middleware import AbsoluteTargets, LocalOnly
from api_client.emulator.platform import Platform
from api_client.emulator.routes import files, objects
from api_client.emulator.xml_answers import xml_fault

logger = logging.getLogger(__name__)


class NoSecondCredentials:
    """Refuses requests that carry a key beside the URL's own signature, in S3's words.

    A client that sends its key wherever a URL leads is found out here.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look for the header."""
        if scope["type"] == "http" and any(name == b"authorization" for name, _value in scope["headers"]):
            words = "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature "
            words += "query string parameter or the Authorization header should be specified"
            await xml_fault(400, "InvalidArgument", words)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def build_objects_app(platform: Platform) -> Starlette:
    """The application that reads objects of a platform for whoever holds a presigned URL."""
    app = Starlette(
        routes=[*files.ROUTES, *objects.READING_ROUTES],
        middleware=[Middleware(AbsoluteTargets), Middleware(LocalOnly), Middleware(NoSecondCredentials)],
        exception_handlers={HTTPException: _answer_http_exception, Exception: _answer_unexpected},
    )
    app.router.redirect_slashes = False
    app.state.platform = platform
    return app


async def _answer_http_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return xml_fault(404, "NoSuchBucket", "The specified bucket does not exist")
    return xml_fault(error.status_code, "MethodNotAllowed", "The specified method is not allowed here.")


async def _answer_unexpected(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return xml_fault(500, "InternalError", "We encountered an internal error. Please try again.")
