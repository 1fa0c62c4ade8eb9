"""A job's metrics, in the published GET form and the deprecated POST form that truss uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import metrics_body
from api_client.emulator.faults import invalid
from api_client.emulator.parameters import Parameters, read_object
from api_client.emulator.routes.access import JOB, job_of, platform_of

MAXIMUM_STEP_S = 7 * 24 * 3600
MS_PER_S = 1000


def _answer(request: Request, values: Mapping[str, Any]) -> Response:
    """The samples. A missing bound is the backend's to choose: it knows when the job ended."""
    job = job_of(request)
    parameters = Parameters(values)
    start_ms = parameters.integer("start_epoch_millis")
    end_ms = parameters.integer("end_epoch_millis")
    if start_ms is not None and end_ms is not None and start_ms > end_ms:
        raise invalid("start_epoch_millis must not be after end_epoch_millis")
    metrics = (
        platform_of(request)
        .backend_of(job.id)
        .metrics(
            job.id,
            start_s=None if start_ms is None else start_ms / MS_PER_S,
            end_s=None if end_ms is None else end_ms / MS_PER_S,
            step_s=parameters.integer("step_seconds", minimum=1, maximum=MAXIMUM_STEP_S),
        )
    )
    return Response(metrics_body(metrics, job), media_type="application/json")


def _get(request: Request) -> Response:
    return _answer(request, request.query_params)


async def _post(request: Request) -> Response:
    values = await read_object(request)
    return await run_in_threadpool(_answer, request, values)


ROUTES = [Route(JOB + "/metrics", _get, methods=["GET"]), Route(JOB + "/metrics", _post, methods=["POST"])]
