"""Models and deployments as the REST API answers them, with every field that its schema requires."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from api_client.emulator.catalog import instance
from api_client.emulator.platform import Platform
from api_client.emulator.serving.lifecycle import status_at
from api_client.emulator.store.deployments import StoredDeployment, StoredModel
from api_client.emulator.timestamps import iso

PRODUCTION = "production"
CONCURRENCY_TARGET = 32
AUTOSCALING_WINDOW_S = 60
SCALE_DOWN_DELAY_S = 900
TARGET_UTILIZATION_PERCENTAGE = 70


def model_fields(platform: Platform, model: StoredModel) -> dict[str, Any]:
    """A model."""
    deployments = platform.stores.deployments.of(model.id)
    production = next((each for each in deployments if each.is_production), None)
    team = platform.stores.teams.get(model.team_id)
    return {
        "id": model.id,
        "created_at": iso(model.created_at),
        "name": model.name,
        "deployments_count": len(deployments),
        "production_deployment_id": production.id if production else None,
        "development_deployment_id": None,
        "instance_type_name": _machine_name(production) if production else "",
        "team_name": team.name if team else "",
    }


def deployment_fields(deployment: StoredDeployment, now: datetime) -> dict[str, Any]:
    """A deployment as it stands at that moment."""
    status = status_at(deployment, now)
    is_active = status == "ACTIVE"
    return {
        "id": deployment.id,
        "created_at": iso(deployment.created_at),
        "name": deployment.name,
        "model_id": deployment.model_id,
        "is_production": deployment.is_production,
        "is_development": False,
        "status": status,
        "active_replica_count": 1 if is_active else 0,
        "autoscaling_settings": _autoscaling() if is_active else None,
        "instance_type_name": _machine_name(deployment),
        "environment": PRODUCTION if deployment.is_production else None,
        "labels": None,
        "request_backpressure_settings": {"policy": None},
    }


def _machine_name(deployment: StoredDeployment) -> str:
    try:
        return instance(deployment.plan.instance_type_id).name
    except LookupError:  # deployed by another version, which offered other machines
        return deployment.plan.instance_type_id


def _autoscaling() -> dict[str, Any]:
    return {
        "min_replica": 0,
        "max_replica": 1,
        "autoscaling_window": AUTOSCALING_WINDOW_S,
        "scale_down_delay": SCALE_DOWN_DELAY_S,
        "concurrency_target": CONCURRENCY_TARGET,
        "target_utilization_percentage": TARGET_UTILIZATION_PERCENTAGE,
    }
