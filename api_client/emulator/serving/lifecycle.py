"""A deployment's status, log and answers, computed from its creation time, so a restart changes nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from api_client.emulator.catalog import instance
from api_client.emulator.formats import epoch_ns, iso
from api_client.emulator.platform import Platform
from api_client.emulator.store.deployments import StoredDeployment, StoredModel
from api_client.models import LogRecord

Status = Literal["BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE", "DEPLOY_FAILED"]

DEPLOYING_AFTER_S = 4.0
LOADING_AFTER_S = 8.0
FAILED_AFTER_S = 12.0
"""Time after which a server that cannot start gives up."""
ACTIVE_AFTER_S = 15.0


def age_s(deployment: StoredDeployment, now: datetime) -> float:
    """Return the age in seconds; never negative, even if the machine's clock was set back."""
    return max(0.0, (now - deployment.created_at).total_seconds())


def status_at(deployment: StoredDeployment, now: datetime) -> Status:
    """Return the status at that moment, a documented value (API facts, 2.3)."""
    age = age_s(deployment, now)
    if age < DEPLOYING_AFTER_S:
        return "BUILDING"
    if age < LOADING_AFTER_S:
        return "DEPLOYING"
    if deployment.plan.failure is not None:
        return "LOADING_MODEL" if age < FAILED_AFTER_S else "DEPLOY_FAILED"
    return "LOADING_MODEL" if age < ACTIVE_AFTER_S else "ACTIVE"


PRODUCTION = "production"
CONCURRENCY_TARGET = 32
AUTOSCALING_WINDOW_S = 60
SCALE_DOWN_DELAY_S = 900
TARGET_UTILIZATION_PERCENTAGE = 70


def model_fields(platform: Platform, model: StoredModel) -> dict[str, Any]:
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
    except LookupError:  # deployed by another version with other instance types
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


NS_PER_S = 1_000_000_000
REPLICA_LENGTH = 5
"""A deployment's replica is named by a short id of this length (API facts, 6)."""

_BETWEEN_LINES_S = 0.6
_WARNINGS_AFTER_S = 7.0
_DECIDED_AFTER_S = 11.0
"""After this time the log shows whether the server starts."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line at ``after_s`` seconds after the deployment was created."""

    after_s: float
    message: str
    level: str | None = "INFO"
    on_replica: bool = True


def log_lines(deployment: StoredDeployment, *, until_ns: int) -> list[LogRecord]:
    """Return all lines up to and including ``until_ns`` (epoch nanoseconds), oldest first."""
    born_ns = epoch_ns(deployment.created_at)
    replica = replica_of(deployment)
    records = []
    for line in _lines(deployment):
        stamp_ns = born_ns + round(line.after_s * NS_PER_S)
        if stamp_ns <= until_ns:
            records.append(
                LogRecord(
                    timestamp=str(stamp_ns),
                    message=line.message,
                    replica=replica if line.on_replica else None,
                    request_id=None,
                    level=line.level,
                )
            )
    return records


def replica_of(deployment: StoredDeployment) -> str:
    return hashlib.sha256(deployment.id.encode()).hexdigest()[:REPLICA_LENGTH]


def _lines(deployment: StoredDeployment) -> Iterator[_Line]:
    config: dict[str, Any] = json.loads(deployment.plan.truss_config)
    warnings = list(deployment.plan.warnings)
    yield from _spread(0.0, DEPLOYING_AFTER_S, _building(deployment, config), on_replica=False)
    yield from _spread(DEPLOYING_AFTER_S, _WARNINGS_AFTER_S, _deploying(deployment, config), on_replica=False)
    yield from _spread(_WARNINGS_AFTER_S, LOADING_AFTER_S, warnings, level="WARNING", on_replica=False)
    yield from _spread(LOADING_AFTER_S, _DECIDED_AFTER_S, _loading(config))
    if deployment.plan.failure is not None:
        errors = [deployment.plan.failure, "Engine core initialization failed."]
        yield from _spread(_DECIDED_AFTER_S, FAILED_AFTER_S, errors, level="ERROR")
        yield _Line(FAILED_AFTER_S, "Deployment failed: the server ended with exit code 1", "ERROR", False)
        return
    yield from _spread(_DECIDED_AFTER_S, ACTIVE_AFTER_S, _starting(config))
    names = ", ".join(deployment.plan.served_names)
    yield _Line(ACTIVE_AFTER_S, f"Deployment is active; requests name the model: {names}", on_replica=False)


def _spread(
    begin_s: float, end_s: float, messages: list[str], *, level: str = "INFO", on_replica: bool = True
) -> Iterator[_Line]:
    """Yield the messages in order, spread from ``begin_s`` on, the last one before ``end_s``."""
    apart_s = min(_BETWEEN_LINES_S, (end_s - begin_s) / (len(messages) + 1))
    for number, message in enumerate(messages):
        yield _Line(begin_s + number * apart_s, message, level, on_replica)


def _building(deployment: StoredDeployment, config: dict[str, Any]) -> list[str]:
    return [
        "This emulator only simulates the deployment; nothing is served.",
        f"Building {deployment.name} of {config['model_name']}",
        f"Base image {config['base_image']['image']}",
        *(f"Environment variable {name}" for name in config["environment_variables"]),
        *(f"Secret {name}" for name in config["secrets"]),
        "Build finished",
    ]


def _deploying(deployment: StoredDeployment, config: dict[str, Any]) -> list[str]:
    checkpoints = config["training_checkpoints"]
    folder = checkpoints["download_folder"]
    return [
        f"Scheduling one replica on {deployment.plan.instance_type_id}",
        *(
            f"Downloading {reference['training_job_id']}/{path} to {folder}"
            for reference in checkpoints["artifact_references"]
            for path in reference["paths"]
        ),
    ]


def _loading(config: dict[str, Any]) -> list[str]:
    return [
        f"Starting: {config['docker_server']['start_command']}",
        "Initializing a V1 LLM engine (v0.11.0)",
        "Loading weights ...",
    ]


def _starting(config: dict[str, Any]) -> list[str]:
    server = config["docker_server"]
    return [
        "Loading weights took 3.42 seconds",
        "Graph capturing finished",
        f"Started server on port {server['server_port']}, route {server['predict_endpoint']}",
        f'"GET {server["readiness_endpoint"]} HTTP/1.1" 200 OK',
    ]
