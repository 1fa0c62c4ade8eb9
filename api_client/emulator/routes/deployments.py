"""Models and their deployments, created by deploying checkpoints, and their logs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

from api_client import routes
from api_client.emulator.answers import invalid, not_found, not_served
from api_client.emulator.formats import iso
from api_client.emulator.routes.calls import (
    MS_PER_S,
    NS_PER_MS,
    TEXT,
    Call,
    api_route,
    read_log_query,
    read_time_range,
    served,
)
from api_client.emulator.store.deployments import (
    Change,
    DeploymentStore,
    StoredDeployment,
    StoredModel,
    deployment_fields,
    log_lines,
    startup_fields,
    status_at,
)

FAILED, STOPPED = "DEPLOY_FAILED", ("DEACTIVATING", "INACTIVE")


def _store(call: Call) -> DeploymentStore:
    return call.platform.stores.deployments


def _model_of(call: Call) -> StoredModel:
    model_id = call.path["model_id"]
    model = _store(call).models.get(model_id)
    if model is None:
        raise not_found("Model", model_id)
    return model


def _deployment_of(call: Call) -> StoredDeployment:
    """Return the deployment in the path, by id or as ``production``; raise a 404 if its model has none."""
    deployment_id = call.path["deployment_id"]
    for deployment in _model_of(call).deployments:
        if deployment_id == deployment.id or (deployment_id == "production" and deployment.is_production):
            return deployment
    raise not_found("Deployment", deployment_id)


def _model_fields(call: Call, model: StoredModel) -> dict[str, Any]:
    production, team = model.production, call.platform.stores.teams.get(model.team_id)
    return {
        "id": model.id,
        "created_at": iso(model.created_at),
        "name": model.name,
        "deployments_count": len(model.deployments),
        "production_deployment_id": production.id if production else None,
        "development_deployment_id": None,
        "instance_type_name": production.machine_name if production else "",
        "team_name": team.name if team else "",
    }


def _models(call: Call) -> Any:
    team_id = call.team.id if "team_id" in call.path else None
    name = call.parameters.get("name", TEXT)
    models = [
        _model_fields(call, model)
        for model in reversed(_store(call).models.all())
        if team_id in (None, model.team_id) and (not name or name == model.name)
    ]
    return {"models": models}


def _delete_model(call: Call) -> Any:
    model = _model_of(call)
    _store(call).models.delete(model.id)
    return {"id": model.id, "deleted": True}


def _deployments(call: Call) -> Any:
    name, now = call.parameters.get("name", TEXT), call.platform.now()
    deployments = [
        deployment for deployment in _model_of(call).deployments if name in (None, "", deployment.name)
    ]
    return {"deployments": [deployment_fields(deployment, now) for deployment in deployments]}


def _delete_deployment(call: Call) -> Any:
    deployment = _deployment_of(call)
    _store(call).change(deployment.model_id, lambda other: None if other.id == deployment.id else other)
    return {"id": deployment.id, "deleted": True, "model_id": deployment.model_id}


def _promote(call: Call) -> Any:
    deployment = _deployment_of(call)
    if _status(call) == FAILED:
        raise invalid("a deployment that failed cannot be promoted")
    _store(call).change(
        deployment.model_id, lambda other: replace(other, is_production=other.id == deployment.id)
    )
    return deployment_fields(_deployment_of(call), call.platform.now())


def _activate(call: Call) -> Any:
    status = _status(call)
    if status == FAILED:
        raise invalid("a deployment that failed cannot be activated; retry it")
    return {"success": True, "no_op": not _change(call, "activate", status in STOPPED)}


def _deactivate(call: Call) -> Any:
    return {"success": True, "no_op": not _change(call, "deactivate", _status(call) not in STOPPED)}


def _retry(call: Call) -> Any:
    retried = _change(call, "retry", _status(call) == FAILED)
    return {
        "retried": retried,
        "reason": None if retried else "only a deployment that failed can be retried",
        "deployment": deployment_fields(_deployment_of(call), call.platform.now()),
    }


def _status(call: Call) -> str:
    return status_at(_deployment_of(call), call.platform.now())


def _change(call: Call, kind: Literal["retry", "activate", "deactivate"], is_possible: bool) -> bool:
    """Add a change to the deployment in the path if it is possible, and return whether it is."""
    deployment, change = _deployment_of(call), Change(call.platform.now(), kind)
    if is_possible:
        changed = replace(deployment, changes=(*deployment.changes, change))
        _store(call).change(deployment.model_id, lambda other: changed if other.id == changed.id else other)
    return is_possible


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
            routes.DEPLOYMENT: lambda call: deployment_fields(_deployment_of(call), call.platform.now()),
            # Nobody wrote the configuration as text.
            routes.DEPLOYMENT_CONFIG: lambda call: {
                "config": json.loads(_deployment_of(call).plan.truss_config),
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
