"""A job's log lines, in the published GET form and the deprecated POST form that truss uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.backend import Direction
from api_client.emulator.faults import invalid
from api_client.emulator.parameters import Parameters, read_object
from api_client.emulator.routes.access import JOB, job_of, platform_of

DEFAULT_LIMIT = 500
MAXIMUM_LIMIT = 1000
DEFAULT_WINDOW_MS = 30 * 60 * 1000
MAXIMUM_WINDOW_MS = 7 * 24 * 3600 * 1000
NS_PER_MS = 1_000_000
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
"""Rising severity."""


def _answer(request: Request, values: Mapping[str, Any]) -> Response:
    """The window's lines. Defaults and bounds: API facts, 2.2; without a direction, newest first."""
    platform = platform_of(request)
    job = job_of(request)
    parameters = Parameters(values)
    start_ms, end_ms = _window(parameters, int(platform.now_s() * 1000))
    limit = parameters.integer("limit", minimum=1, maximum=MAXIMUM_LIMIT, default=DEFAULT_LIMIT)
    direction: Direction = "asc" if parameters.choice("direction", ("asc", "desc")) == "asc" else "desc"
    lowest = parameters.choice("min_level", LEVELS)
    lines = platform.backend_of(job.id).logs(
        job.id,
        start_ns=start_ms * NS_PER_MS,
        end_ns=end_ms * NS_PER_MS,
        direction=direction,
        limit=limit or DEFAULT_LIMIT,
        levels=None if lowest is None else frozenset(LEVELS[LEVELS.index(lowest) :]),
    )
    return JsonAnswer({"logs": lines})


def _window(parameters: Parameters, now_ms: int) -> tuple[int, int]:
    # "Now" is rounded up: a line of this very millisecond has been written already.
    end_ms = parameters.integer("end_epoch_millis", default=now_ms + 1)
    assert end_ms is not None
    start_ms = parameters.integer("start_epoch_millis", default=max(0, end_ms - DEFAULT_WINDOW_MS))
    assert start_ms is not None
    if start_ms > end_ms:
        raise invalid("start_epoch_millis must not be after end_epoch_millis")
    if end_ms - start_ms > MAXIMUM_WINDOW_MS:
        raise invalid("the window from start_epoch_millis to end_epoch_millis must not exceed 7 days")
    return start_ms, end_ms


def _get(request: Request) -> Response:
    return _answer(request, request.query_params)


async def _post(request: Request) -> Response:
    values = await read_object(request)
    return await run_in_threadpool(_answer, request, values)


ROUTES = [Route(JOB + "/logs", _get, methods=["GET"]), Route(JOB + "/logs", _post, methods=["POST"])]
