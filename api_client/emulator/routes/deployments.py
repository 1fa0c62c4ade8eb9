"""Models and their deployments, created by deploying checkpoints, and their logs."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from api_client import routes
from api_client.emulator.answers import invalid, not_found, not_served
from api_client.emulator.backend import LogQuery
from api_client.emulator.routes.calls import (
    MS_PER_S,
    NS_PER_MS,
    Answers,
    Call,
    Parameters,
    api_route,
    read_log_query,
    read_time_range,
)
from api_client.emulator.serving.lifecycle import (
    PRODUCTION,
    deployment_fields,
    log_lines,
    model_fields,
    startup_fields,
    status_at,
)
from api_client.emulator.store.deployments import Change, StoredDeployment, StoredModel
from api_client.models import LogRecord

FAILED = "DEPLOY_FAILED"


def _model_of(call: Call) -> StoredModel:
    model_id = call.path["model_id"]
    model = call.platform.stores.deployments.model(model_id)
    if model is None:
        raise not_found("Model", model_id)
    return model


def _deployment_of(call: Call) -> StoredDeployment:
    """Return the deployment in the path, by id or as ``production``; raise a 404 if its model has none."""
    wanted = call.path["deployment_id"]
    for deployment in _model_of(call).deployments:
        if wanted == deployment.id or (wanted == PRODUCTION and deployment.is_production):
            return deployment
    raise not_found("Deployment", wanted)


def _models(call: Call) -> Any:
    team_id = call.team.id if "team_id" in call.path else None
    name = call.parameters.text("name")
    models = [
        model_fields(call.platform, model)
        for model in call.platform.stores.deployments.models()
        if team_id in (None, model.team_id) and (not name or name == model.name)
    ]
    return {"models": models}


def _delete_model(call: Call) -> Any:
    model = _model_of(call)
    call.platform.stores.deployments.delete_model(model.id)
    return {"id": model.id, "deleted": True}


def _deployments(call: Call) -> Any:
    name, now = call.parameters.text("name"), call.platform.now()
    found = _model_of(call).deployments
    return {"deployments": [deployment_fields(each, now) for each in found if not name or name == each.name]}


def _delete_deployment(call: Call) -> Any:
    deployment = _deployment_of(call)
    call.platform.stores.deployments.delete(deployment)
    return {"id": deployment.id, "deleted": True, "model_id": deployment.model_id}


def _promote(call: Call) -> Any:
    deployment = _deployment_of(call)
    if _status(call, deployment) == FAILED:
        raise invalid("a deployment that failed cannot be promoted")
    return deployment_fields(call.platform.stores.deployments.promote(deployment), call.platform.now())


def _activate(call: Call) -> Any:
    deployment = _deployment_of(call)
    status = _status(call, deployment)
    if status == FAILED:
        raise invalid("a deployment that failed cannot be activated; retry it")
    is_stopped = status in ("DEACTIVATING", "INACTIVE")
    if is_stopped:
        _change(call, deployment, "activate")
    return {"success": True, "no_op": not is_stopped}


def _deactivate(call: Call) -> Any:
    deployment = _deployment_of(call)
    is_stopped = _status(call, deployment) in ("DEACTIVATING", "INACTIVE")
    if not is_stopped:
        _change(call, deployment, "deactivate")
    return {"success": True, "no_op": is_stopped}


def _retry(call: Call) -> Any:
    deployment = _deployment_of(call)
    can_retry = _status(call, deployment) == FAILED
    if can_retry:
        deployment = _change(call, deployment, "retry")
    return {
        "retried": can_retry,
        "reason": None if can_retry else "only a deployment that failed can be retried",
        "deployment": deployment_fields(deployment, call.platform.now()),
    }


def _status(call: Call, deployment: StoredDeployment) -> str:
    return status_at(deployment, call.platform.now())


def _change(
    call: Call, deployment: StoredDeployment, kind: Literal["retry", "activate", "deactivate"]
) -> StoredDeployment:
    return call.platform.stores.deployments.change(deployment, Change(call.platform.now(), kind))


def _startups(call: Call) -> Any:
    start_ms, end_ms = read_time_range(call.parameters)
    if start_ms is None or end_ms is None:
        raise invalid("start_epoch_millis and end_epoch_millis are required")
    found = [
        each
        for each in startup_fields(_deployment_of(call), call.platform.now())
        if start_ms <= each["started_at_epoch_millis"] < end_ms
    ]
    return {"items": found, "pagination": {"has_more": False, "cursor": None}, "total_count": len(found)}


def _not_served(_: Call) -> Any:
    raise not_served("the emulator only serves models from training checkpoints")


MAXIMUM_LISTED = 8
MAXIMUM_PATTERN_LENGTH = 256


def _logs(call: Call) -> Any:
    deployment, parameters = _deployment_of(call), call.parameters
    now_ms = int(call.platform.now_s() * MS_PER_S)
    wanted = read_log_query(parameters, now_ms)
    lines = [
        line
        for line in log_lines(deployment, until_ns=(now_ms + 1) * NS_PER_MS - 1)
        if _in_window(line, wanted) and _matches(line, parameters)
    ]
    if wanted.direction == "desc":
        lines.reverse()
    return {"logs": lines[: wanted.limit]}


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


def _config(call: Call) -> Any:
    """Return the parsed configuration; ``raw_config`` is null because nobody wrote it as text."""
    return {"config": json.loads(_deployment_of(call).plan.truss_config), "raw_config": None}


MODELS: Answers = {
    routes.MODELS: _models,
    routes.MODEL: lambda call: model_fields(call.platform, _model_of(call)),
    routes.DEPLOYMENTS: _deployments,
    routes.DEPLOYMENT: lambda call: deployment_fields(_deployment_of(call), call.platform.now()),
    routes.DEPLOYMENT_CONFIG: _config,
    routes.DEPLOYMENT_LOGS: _logs,
    routes.STARTUPS: _startups,
    routes.PROMOTE: _promote,
    routes.ACTIVATE: _activate,
    routes.DEACTIVATE: _deactivate,
    routes.RETRY: _retry,
}
OTHER_ROUTES = [
    api_route("POST", routes.MODELS.path, _not_served),
    api_route("POST", "/v1/prepare_model_upload", _not_served),
    api_route("GET", "/v1/teams/{team_id}/models", _models),
    api_route("DELETE", routes.MODEL.path, _delete_model),
    api_route("POST", routes.DEPLOYMENTS.path, _not_served),
    api_route("DELETE", routes.DEPLOYMENT.path, _delete_deployment),
    api_route("POST", routes.DEPLOYMENT_LOGS.path, _logs),
]
