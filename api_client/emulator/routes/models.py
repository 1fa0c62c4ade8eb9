"""Served models. The emulator deploys none, so the lists are empty and nothing is found by id."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.faults import not_found, not_served
from api_client.emulator.routes.access import platform_of

MODEL = "/v1/models/{model_id}"
DEPLOYMENT = MODEL + "/deployments/{deployment_id}"


def _models(_: Request) -> Response:
    return JsonAnswer({"models": []})


def _team_models(request: Request) -> Response:
    platform_of(request).team(request.path_params["team_id"])
    return JsonAnswer({"models": []})


def _no_such_model(request: Request) -> Response:
    raise not_found("Model", request.path_params["model_id"])


def _not_served(_: Request) -> Response:
    raise not_served("the emulator does not deploy models yet")


ROUTES = [
    Route("/v1/models", _models, methods=["GET"]),
    Route("/v1/models", _not_served, methods=["POST"]),
    Route("/v1/prepare_model_upload", _not_served, methods=["POST"]),
    Route("/v1/teams/{team_id}/models", _team_models, methods=["GET"]),
    Route(MODEL, _no_such_model, methods=["GET", "DELETE"]),
    Route(MODEL + "/deployments", _no_such_model, methods=["GET", "POST"]),
    Route(DEPLOYMENT, _no_such_model, methods=["GET", "DELETE"]),
    Route(DEPLOYMENT + "/logs", _no_such_model, methods=["GET", "POST"]),
]
