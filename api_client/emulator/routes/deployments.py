"""Models and their deployments, created by deploying checkpoints (API facts, 2.3), and their logs."""

from __future__ import annotations

import json
import re

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer, invalid, not_found, not_served
from api_client.emulator.backend import LogQuery
from api_client.emulator.parameters import NS_PER_MS, Parameters, platform_of, read_log_query, read_values
from api_client.emulator.serving.lifecycle import PRODUCTION, deployment_fields, log_lines, model_fields
from api_client.emulator.store.deployments import StoredDeployment, StoredModel
from api_client.models import LogRecord

MODEL = "/v1/models/{model_id}"
DEPLOYMENT = MODEL + "/deployments/{deployment_id}"


def model_of(request: Request) -> StoredModel:
    model_id = request.path_params["model_id"]
    model = platform_of(request).stores.deployments.model(model_id)
    if model is None:
        raise not_found("Model", model_id)
    return model


def deployment_of(request: Request) -> StoredDeployment:
    """Return the deployment in the path, by id or as ``production``; raise a 404 if its model has none."""
    model = model_of(request)
    wanted = request.path_params["deployment_id"]
    for deployment in model.deployments:
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
    found = model_of(request).deployments
    now = platform.now()
    return JsonAnswer(
        {"deployments": [deployment_fields(each, now) for each in found if not name or name == each.name]}
    )


def _deployment(request: Request) -> Response:
    return JsonAnswer(deployment_fields(deployment_of(request), platform_of(request).now()))


def _delete_deployment(request: Request) -> Response:
    deployment = deployment_of(request)
    platform_of(request).stores.deployments.delete(deployment)
    return JsonAnswer({"id": deployment.id, "deleted": True, "model_id": deployment.model_id})


def _not_served(_: Request) -> Response:
    raise not_served("the emulator only serves models from training checkpoints")


MODELS_ROUTES = [
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


MAXIMUM_LISTED = 8
MAXIMUM_PATTERN_LENGTH = 256
MS_PER_S = 1000


async def _logs(request: Request) -> Response:
    parameters = await read_values(request)
    return await run_in_threadpool(_logs_answer, request, parameters)


def _logs_answer(request: Request, parameters: Parameters) -> Response:
    deployment = deployment_of(request)
    now_ms = int(platform_of(request).now_s() * MS_PER_S)
    wanted = read_log_query(parameters, now_ms)
    lines = [
        line
        for line in log_lines(deployment, until_ns=(now_ms + 1) * NS_PER_MS - 1)
        if _in_window(line, wanted) and _matches(line, parameters)
    ]
    if wanted.direction == "desc":
        lines.reverse()
    return JsonAnswer({"logs": lines[: wanted.limit]})


def _in_window(line: LogRecord, wanted: LogQuery) -> bool:
    if not wanted.start_ns <= int(line["timestamp"]) < wanted.end_ns:
        return False
    return wanted.levels is None or line.get("level") in wanted.levels


def _matches(line: LogRecord, parameters: Parameters) -> bool:
    message = line["message"]
    replica = parameters.text("replica")
    if replica and line.get("replica") != replica:
        return False
    if parameters.text("request_id") or parameters.text("component"):
        return False  # no line here belongs to a request or a component
    pattern = _pattern(parameters)
    if pattern is not None and not pattern.search(message):
        return False
    return all(part in message for part in _listed(parameters, "includes")) and not any(
        part in message for part in _listed(parameters, "excludes")
    )


def _pattern(parameters: Parameters) -> re.Pattern[str] | None:
    text = parameters.text("search_pattern")
    if not text:
        return None
    if len(text) > MAXIMUM_PATTERN_LENGTH:
        raise invalid(f"search_pattern must not exceed {MAXIMUM_PATTERN_LENGTH} characters")
    try:
        return re.compile(text)
    except re.error as error:
        raise invalid(f"search_pattern: {error}") from error


def _listed(parameters: Parameters, name: str) -> list[str]:
    texts = parameters.texts(name) or []
    if len(texts) > MAXIMUM_LISTED:
        raise invalid(f"{name} must not hold more than {MAXIMUM_LISTED} texts")
    return texts


def _config(request: Request) -> Response:
    """Return the parsed configuration; ``raw_config`` is null because nobody wrote it as text."""
    config = json.loads(deployment_of(request).plan.truss_config)
    return JsonAnswer({"config": config, "raw_config": None})


DEPLOYMENT_LOGS_ROUTES = [
    Route(DEPLOYMENT + "/logs", _logs, methods=["GET", "POST"]),
    Route(DEPLOYMENT + "/config", _config, methods=["GET"]),
]
