"""Served models and their deployments: what became of deployed checkpoints (API facts, 2.3)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.faults import not_found, not_served
from api_client.emulator.routes.access import platform_of
from api_client.emulator.serving.answers import PRODUCTION, deployment_fields, model_fields
from api_client.emulator.store.deployments import StoredDeployment, StoredModel

MODEL = "/v1/models/{model_id}"
DEPLOYMENT = MODEL + "/deployments/{deployment_id}"


def model_of(request: Request) -> StoredModel:
    """The model that the path names; 404 if there is none."""
    model_id = request.path_params["model_id"]
    model = platform_of(request).stores.deployments.model(model_id)
    if model is None:
        raise not_found("Model", model_id)
    return model


def deployment_of(request: Request) -> StoredDeployment:
    """The deployment that the path names, by id or as ``production``; 404 if its model has no such one."""
    model = model_of(request)
    wanted = request.path_params["deployment_id"]
    for deployment in platform_of(request).stores.deployments.of(model.id):
        if wanted == deployment.id or (wanted == PRODUCTION and deployment.is_production):
            return deployment
    raise not_found("Deployment", wanted)


def _models(request: Request) -> Response:
    platform = platform_of(request)
    team_id = request.path_params.get("team_id")
    if team_id is not None:
        platform.team(team_id)
    name = request.query_params.get("name")
    models = [
        model_fields(platform, model)
        for model in platform.stores.deployments.models()
        if team_id in (None, model.team_id) and (not name or name == model.name)
    ]
    return JsonAnswer({"models": models})


def _model(request: Request) -> Response:
    return JsonAnswer(model_fields(platform_of(request), model_of(request)))


def _delete_model(request: Request) -> Response:
    model = model_of(request)
    platform_of(request).stores.deployments.delete_model(model.id)
    return JsonAnswer({"id": model.id, "deleted": True})


def _deployments(request: Request) -> Response:
    platform = platform_of(request)
    name = request.query_params.get("name")
    found = platform.stores.deployments.of(model_of(request).id)
    now = platform.now()
    return JsonAnswer(
        {"deployments": [deployment_fields(each, now) for each in found if not name or name == each.name]}
    )


def _deployment(request: Request) -> Response:
    return JsonAnswer(deployment_fields(deployment_of(request), platform_of(request).now()))


def _delete_deployment(request: Request) -> Response:
    deployment = deployment_of(request)
    platform_of(request).stores.deployments.delete(deployment.id)
    return JsonAnswer({"id": deployment.id, "deleted": True, "model_id": deployment.model_id})


def _not_served(_: Request) -> Response:
    raise not_served("the emulator serves models from training checkpoints alone, and only until deleted")


ROUTES = [
    Route("/v1/models", _models, methods=["GET"]),
    Route("/v1/models", _not_served, methods=["POST"]),
    Route("/v1/prepare_model_upload", _not_served, methods=["POST"]),
    Route("/v1/teams/{team_id}/models", _models, methods=["GET"]),
    Route(MODEL, _model, methods=["GET"]),
    Route(MODEL, _delete_model, methods=["DELETE"]),
    Route(MODEL + "/deployments", _deployments, methods=["GET"]),
    Route(MODEL + "/deployments", _not_served, methods=["POST"]),
    Route(DEPLOYMENT, _deployment, methods=["GET"]),
    Route(DEPLOYMENT, _delete_deployment, methods=["DELETE"]),
    *(
        Route(f"{DEPLOYMENT}/{action}", _not_served, methods=["POST"])
        for action in ("activate", "deactivate", "retry", "promote")
    ),
]
