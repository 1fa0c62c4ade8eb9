"""The emulator's HTTP face: every route, and the guards before them."""

from __future__ import annotations

import logging

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from api_client.emulator.answers import fault_answer
from api_client.emulator.faults import ApiFault
from api_client.emulator.middleware import AbsoluteTargets, KeyRequired, LocalOnly
from api_client.emulator.platform import Platform
from api_client.emulator.routes import (
    account,
    capacity,
    checkpoints,
    control,
    deployment_logs,
    files,
    graphql,
    jobs,
    logs,
    metrics,
    models,
    objects,
    pages,
    projects,
    sessions,
)

logger = logging.getLogger(__name__)

FAULT_CODES = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}


def build_app(platform: Platform, *, key: str) -> Starlette:
    """The application over a platform, which whoever serves it starts and closes."""
    app = Starlette(
        routes=[
            *projects.ROUTES,
            *jobs.ROUTES,
            *logs.ROUTES,
            *metrics.ROUTES,
            *checkpoints.ROUTES,
            *sessions.ROUTES,
            *capacity.ROUTES,
            *account.ROUTES,
            *models.ROUTES,
            *deployment_logs.ROUTES,
            *graphql.ROUTES,
            *objects.ROUTES,
            *files.ROUTES,
            *pages.ROUTES,
            *control.ROUTES,
        ],
        middleware=[
            Middleware(AbsoluteTargets),
            Middleware(LocalOnly),
            Middleware(KeyRequired, key),
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
    return fault_answer(ApiFault(500, "INTERNAL_ERROR", "the emulator failed; its log says how"))
