"""Teams, secrets, machines and their prices, and who the key belongs to."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES
from api_client.emulator.faults import invalid, not_found
from api_client.emulator.parameters import Parameters, read_object
from api_client.emulator.platform import EMULATOR_USER_EMAIL, Platform
from api_client.emulator.routes.access import platform_of
from api_client.models import Team

EMULATOR_USER_ID = "emulator"


def _teams(request: Request) -> Response:
    name = request.query_params.get("name")
    teams = [team for team in platform_of(request).stores.teams.all() if name in (None, "", team.name)]
    return JsonAnswer({"teams": [team.model_dump(mode="json") for team in teams]})


def _team(request: Request) -> Response:
    return JsonAnswer(platform_of(request).team(request.path_params["team_id"]).model_dump(mode="json"))


def _secrets_team(request: Request) -> Team:
    platform = platform_of(request)
    team_id = request.path_params.get("team_id")
    return platform.stores.teams.default() if team_id is None else platform.team(team_id)


def _secrets(request: Request) -> Response:
    secrets = platform_of(request).stores.secrets.names(_secrets_team(request))
    return JsonAnswer({"secrets": [secret.model_dump(mode="json") for secret in secrets]})


async def _upsert_secret(request: Request) -> Response:
    platform: Platform = platform_of(request)
    team = _secrets_team(request)
    parameters = Parameters(await read_object(request))
    name = parameters.required_text("name")
    value = parameters.text("value")
    if value is None:
        raise invalid("value is required")
    secret = platform.stores.secrets.upsert(team, name, value, platform.now())
    return JsonAnswer(secret.model_dump(mode="json"))


def _delete_secret(request: Request) -> Response:
    name = request.path_params["name"]
    if not platform_of(request).stores.secrets.delete(_secrets_team(request), name):
        raise not_found("Secret", name)
    return JsonAnswer({"name": name})


def _instance_types(_: Request) -> Response:
    return JsonAnswer({"instance_types": [machine.model_dump(mode="json") for machine in INSTANCE_TYPES]})


def _prices(_: Request) -> Response:
    return JsonAnswer({"instance_types": [price.model_dump(mode="json") for price in PRICES]})


def _me(request: Request) -> Response:
    return JsonAnswer(
        {
            "user_id": EMULATOR_USER_ID,
            "email": EMULATOR_USER_EMAIL,
            "name": "You",
            "workspace_name": platform_of(request).workspace_name,
        }
    )


ROUTES = [
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
