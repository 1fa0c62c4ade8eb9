"""Routes of the account: teams, secrets, instance types, prices, the key's owner, and GPU capacity."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer, complete_job, invalid, not_found
from api_client.emulator.capacity import queue_context, training_capacity
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES
from api_client.emulator.parameters import Parameters, platform_of, read_object
from api_client.emulator.platform import EMULATOR_USER_EMAIL, Platform
from api_client.models import Team

EMULATOR_USER_ID = "emulator"


def _teams(request: Request) -> Response:
    name = request.query_params.get("name")
    teams = [team for team in platform_of(request).stores.teams.all() if name in (None, "", team.name)]
    return JsonAnswer({"teams": teams})


def _team(request: Request) -> Response:
    return JsonAnswer(platform_of(request).team(request.path_params["team_id"]))


def _secrets_team(request: Request) -> Team:
    platform = platform_of(request)
    team_id = request.path_params.get("team_id")
    return platform.stores.teams.default() if team_id is None else platform.team(team_id)


def _secrets(request: Request) -> Response:
    secrets = platform_of(request).stores.secrets.names(_secrets_team(request))
    return JsonAnswer({"secrets": secrets})


async def _upsert_secret(request: Request) -> Response:
    platform: Platform = platform_of(request)
    team = _secrets_team(request)
    parameters = Parameters(await read_object(request))
    name = parameters.required_text("name")
    value = parameters.text("value")
    if value is None:
        raise invalid("value is required")
    secret = platform.stores.secrets.upsert(team, name, value, platform.now())
    return JsonAnswer(secret)


def _delete_secret(request: Request) -> Response:
    name = request.path_params["name"]
    if not platform_of(request).stores.secrets.delete(_secrets_team(request), name):
        raise not_found("Secret", name)
    return JsonAnswer({"name": name})


def _instance_types(_: Request) -> Response:
    return JsonAnswer({"instance_types": INSTANCE_TYPES})


def _prices(_: Request) -> Response:
    return JsonAnswer({"instance_types": PRICES})


def _me(request: Request) -> Response:
    return JsonAnswer(
        {
            "user_id": EMULATOR_USER_ID,
            "email": EMULATOR_USER_EMAIL,
            "name": "You",
            "workspace_name": platform_of(request).workspace_name,
        }
    )


ACCOUNT_ROUTES = [
    Route("/v1/teams", _teams, methods=["GET"]),
    Route("/v1/teams/{team_id}", _team, methods=["GET"]),
    *(
        route
        for prefix in ("/v1/secrets", "/v1/teams/{team_id}/secrets")
        for route in (
            Route(prefix, _secrets, methods=["GET"]),
            Route(prefix, _upsert_secret, methods=["POST"]),
            Route(prefix + "/{name:path}", _delete_secret, methods=["DELETE"]),
        )
    ),
    Route("/v1/instance_types", _instance_types, methods=["GET"]),
    Route("/v1/instance_type_prices", _prices, methods=["GET"]),
    Route("/v1/users/me", _me, methods=["GET"]),
]


MAXIMUM_GPUS = 100_000


def _capacity(request: Request) -> Response:
    return JsonAnswer(training_capacity(platform_of(request)))


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
    return JsonAnswer({"team_gpu_capacity": changed})


def _queue_context(request: Request) -> Response:
    context = queue_context(platform_of(request), request.path_params["job_id"])
    return JsonAnswer(context)


CAPACITY_ROUTES = [
    Route("/v1/training/capacity", _capacity, methods=["GET"]),
    Route("/v1/training/capacity", _set_limit, methods=["PATCH"]),
    Route("/v1/training/jobs/{job_id}/queue_context", _queue_context, methods=["GET"]),
]


async def _preempt(request: Request) -> Response:
    job = await platform_of(request).preempt_job(request.path_params["job_id"])
    return JsonAnswer({"training_job": complete_job(job)})


CONTROL_ROUTES = [Route("/emulator/jobs/{job_id}/preempt", _preempt, methods=["POST"])]
