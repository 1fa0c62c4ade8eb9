"""GPU capacity, and the queue context of a job."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.capacity import training_capacity
from api_client.emulator.faults import not_found
from api_client.emulator.parameters import Parameters, read_object
from api_client.emulator.queueing import queue_context
from api_client.emulator.routes.access import platform_of

MAXIMUM_GPUS = 100_000


def _capacity(request: Request) -> Response:
    return JsonAnswer(training_capacity(platform_of(request)).model_dump(mode="json"))


async def _set_limit(request: Request) -> Response:
    platform = platform_of(request)
    parameters = Parameters(await read_object(request))
    team = platform.team(parameters.required_text("team_id"))
    gpu_type = parameters.required_text("gpu_type")
    max_gpus = parameters.integer("max_gpus", maximum=MAXIMUM_GPUS)
    known = {item.gpu_type for item in training_capacity(platform).gpu_capacities}
    if gpu_type not in known:
        raise not_found("GPU type", gpu_type)
    if max_gpus is not None:
        platform.set_gpu_limit(team, gpu_type, max_gpus)
    changed = next(
        item
        for item in training_capacity(platform).team_gpu_capacities
        if (item.team_id, item.gpu_type) == (team.id, gpu_type)
    )
    return JsonAnswer({"team_gpu_capacity": changed.model_dump(mode="json")})


def _queue_context(request: Request) -> Response:
    context = queue_context(platform_of(request), request.path_params["job_id"])
    return JsonAnswer(context.model_dump(mode="json"))


ROUTES = [
    Route("/v1/training/capacity", _capacity, methods=["GET"]),
    Route("/v1/training/capacity", _set_limit, methods=["PATCH"]),
    Route("/v1/training/jobs/{job_id}/queue_context", _queue_context, methods=["GET"]),
]
