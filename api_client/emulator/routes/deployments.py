"""Models and their deployments, created by deploying checkpoints, and their logs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from api_client import routes
from api_client.emulator.answers import existing, invalid, not_served
from api_client.emulator.routes.calls import (
    TEXT,
    Call,
    api_route,
    read_log_query,
    read_time_range,
    served,
)
from api_client.emulator.store.deployments import (
    StoredDeployment,
    StoredModel,
    deployment_fields,
    log_lines,
    model_fields,
    startup_fields,
)
from api_client.models.logs import MS_PER_S, NS_PER_MS

FAILED, STOPPED = "DEPLOY_FAILED", ("DEACTIVATING", "INACTIVE")


def _model_of(call: Call) -> StoredModel:
    model_id = call.path["model_id"]
    return existing(call.platform.stores.models.get(model_id), "Model", model_id)


def _deployment_of(call: Call) -> StoredDeployment:
    """Return the deployment in the path, by id or as ``production``; raise a 404 if its model has none."""
    deployment_id, model = call.path["deployment_id"], _model_of(call)
    if deployment_id == "production":
        deployment_id = model.production_id or deployment_id
    matches = (deployment for deployment in model.deployments if deployment.id == deployment_id)
    return existing(next(matches, None), "Deployment", deployment_id)


def _model_fields(call: Call, model: StoredModel) -> dict[str, Any]:
    team = call.platform.stores.teams.get(model.team_id)
    return model_fields(model, team.name if team else "")


def _fields(call: Call, deployment: StoredDeployment) -> dict[str, Any]:
    return deployment_fields(_model_of(call), deployment, call.platform.now())


def _models(call: Call) -> Any:
    team_id = call.team.id if "team_id" in call.path else None
    name = call.parameters.get("name", TEXT)
    models = [
        _model_fields(call, model)
        for model in reversed(call.platform.stores.models.all())
        if team_id in (None, model.team_id) and name in (None, model.name)
    ]
    return {"models": models}


async def _delete_model(call: Call) -> Any:
    model = _model_of(call)
    call.platform.stores.models.delete(model.id)
    return {"id": model.id, "deleted": True}


def _deployments(call: Call) -> Any:
    name, deployments = call.parameters.get("name", TEXT), _model_of(call).deployments
    return {
        "deployments": [
            _fields(call, deployment) for deployment in deployments if name in (None, deployment.name)
        ]
    }


async def _delete_deployment(call: Call) -> Any:
    model, deployment = _model_of(call), _deployment_of(call)
    remaining = tuple(candidate for candidate in model.deployments if candidate.id != deployment.id)
    call.platform.stores.models.put(model.id, replace(model, deployments=remaining))
    return {"id": deployment.id, "deleted": True, "model_id": model.id}


async def _promote(call: Call) -> Any:
    model, deployment = _model_of(call), _deployment_of(call)
    if _status(call) == FAILED:
        raise invalid("a deployment that failed cannot be promoted")
    call.platform.stores.models.put(model.id, replace(model, production_id=deployment.id))
    return _fields(call, deployment)


async def _activate(call: Call) -> Any:
    status = _status(call)
    if status == FAILED:
        raise invalid("a deployment that failed cannot be activated; retry it")
    if status in STOPPED:
        _start(call)
    return {"success": True, "no_op": status not in STOPPED}


async def _deactivate(call: Call) -> Any:
    status = _status(call)
    if status not in STOPPED:
        *before, (begun, _) = _deployment_of(call).starts
        _change_starts(call, *before, (begun, call.platform.now()))
    return {"success": True, "no_op": status in STOPPED}


async def _retry(call: Call) -> Any:
    retried = _status(call) == FAILED
    if retried:
        _start(call)
    return {
        "retried": retried,
        "reason": None if retried else "only a deployment that failed can be retried",
        "deployment": _fields(call, _deployment_of(call)),
    }


def _status(call: Call) -> str:
    return _deployment_of(call).status_at(call.platform.now())


def _start(call: Call) -> None:
    _change_starts(call, *_deployment_of(call).starts, (call.platform.now(), None))


def _change_starts(call: Call, *starts: tuple[datetime, datetime | None]) -> None:
    model, deployment = _model_of(call), _deployment_of(call)
    changed = {deployment.id: replace(deployment, starts=starts)}
    deployments = tuple(changed.get(candidate.id, candidate) for candidate in model.deployments)
    call.platform.stores.models.put(model.id, replace(model, deployments=deployments))


def _startups(call: Call) -> Any:
    start_ms, end_ms = read_time_range(call.parameters)
    if start_ms is None or end_ms is None:
        raise invalid("start_epoch_millis and end_epoch_millis are required")
    items = [
        startup
        for startup in startup_fields(_deployment_of(call), call.platform.now())
        if start_ms <= startup["started_at_epoch_millis"] < end_ms
    ]
    return {"items": items, "pagination": {"has_more": False, "cursor": None}, "total_count": len(items)}


def _not_served(_: Call) -> Any:
    raise not_served("the emulator only serves models from training checkpoints")


def _logs(call: Call) -> Any:
    deployment, parameters = _deployment_of(call), call.parameters
    filters = ("includes", "excludes", "search_pattern", "replica", "request_id", "component")
    if not parameters.values.keys().isdisjoint(filters):
        raise not_served("the emulator's logs of deployments can only be chosen by time and level")
    now_ms = int(call.platform.now_s() * MS_PER_S)
    query = read_log_query(parameters, now_ms)
    lines = [
        line
        for line in log_lines(deployment, until_ns=(now_ms + 1) * NS_PER_MS - 1)
        if query.start_ns <= int(line["timestamp"]) < query.end_ns
        and (query.levels is None or line.get("level") in query.levels)
    ]
    return {"logs": (lines if query.direction == "asc" else lines[::-1])[: query.limit]}


ROUTES = [
    *served(
        {
            routes.MODELS: _models,
            routes.MODEL: lambda call: _model_fields(call, _model_of(call)),
            routes.DEPLOYMENTS: _deployments,
            routes.DEPLOYMENT: lambda call: _fields(call, _deployment_of(call)),
            # Nobody wrote the configuration as text.
            routes.DEPLOYMENT_CONFIG: lambda call: {
                "config": _deployment_of(call).config,
                "raw_config": None,
            },
            routes.DEPLOYMENT_LOGS: _logs,
            routes.STARTUPS: _startups,
            routes.PROMOTE: _promote,
            routes.ACTIVATE: _activate,
            routes.DEACTIVATE: _deactivate,
            routes.RETRY: _retry,
        }
    ),
    api_route("POST", routes.MODELS.path, _not_served),
    api_route("POST", "/v1/prepare_model_upload", _not_served),
    api_route("GET", "/v1/teams/{team_id}/models", _models),
    api_route("DELETE", routes.MODEL.path, _delete_model),
    api_route("POST", routes.DEPLOYMENTS.path, _not_served),
    api_route("DELETE", routes.DEPLOYMENT.path, _delete_deployment),
    api_route("POST", routes.DEPLOYMENT_LOGS.path, _logs),
]
