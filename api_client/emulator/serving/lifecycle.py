"""A deployment's status, log and answers, computed from when it was created, stopped and started again.

So a restart of the emulator changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from api_client.clock import epoch_ms
from api_client.emulator.catalog import instance
from api_client.emulator.formats import epoch_ns, iso
from api_client.emulator.platform import Platform
from api_client.emulator.store.deployments import StoredDeployment, StoredModel
from api_client.models import LogRecord

Status = Literal[
    "BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE", "DEPLOY_FAILED", "DEACTIVATING", "INACTIVE"
]

DEPLOYING_AFTER_S = 4.0
LOADING_AFTER_S = 8.0
DECIDED_AFTER_S = 11.0
"""After this time the log shows whether the server starts."""
FAILED_AFTER_S = 12.0
"""Time after which a server that cannot start gives up."""
ACTIVE_AFTER_S = 15.0
INACTIVE_AFTER_S = 3.0
"""Time after a deactivation."""


@dataclass(frozen=True, slots=True)
class Start:
    """A start of the deployment: its time counts from ``begun``; it logs from ``logs_from`` to ``end``."""

    begun: datetime
    logs_from: datetime
    end: datetime | None = None


def starts(deployment: StoredDeployment) -> list[Start]:
    """Return all starts, the oldest first. Activating skips the build, so it begins that much earlier."""
    begun = [Start(deployment.created_at, deployment.created_at)]
    for change in deployment.changes:
        if begun[-1].end is None:
            begun[-1] = replace(begun[-1], end=change.at)
        if change.kind != "deactivate":
            skipped_s = DEPLOYING_AFTER_S if change.kind == "activate" else 0.0
            begun.append(Start(change.at - timedelta(seconds=skipped_s), change.at))
    return begun


def status_at(deployment: StoredDeployment, now: datetime) -> Status:
    """Return the status at that moment, a documented value."""
    start = starts(deployment)[-1]
    if start.end is not None:
        return "DEACTIVATING" if (now - start.end).total_seconds() < INACTIVE_AFTER_S else "INACTIVE"
    fails = deployment.plan.failure is not None
    stages: list[tuple[float, Status]] = [
        (FAILED_AFTER_S, "DEPLOY_FAILED") if fails else (ACTIVE_AFTER_S, "ACTIVE"),
        (LOADING_AFTER_S, "LOADING_MODEL"),
        (DEPLOYING_AFTER_S, "DEPLOYING"),
    ]
    age_s = (now - start.begun).total_seconds()  # negative if the clock was set back
    return next((status for after_s, status in stages if age_s >= after_s), "BUILDING")


PRODUCTION = "production"
AUTOSCALING = {
    "min_replica": 0,
    "max_replica": 1,
    "autoscaling_window": 60,
    "scale_down_delay": 900,
    "concurrency_target": 32,
    "target_utilization_percentage": 70,
}


def model_fields(platform: Platform, model: StoredModel) -> dict[str, Any]:
    production = model.production
    team = platform.stores.teams.get(model.team_id)
    return {
        "id": model.id,
        "created_at": iso(model.created_at),
        "name": model.name,
        "deployments_count": len(model.deployments),
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
        "autoscaling_settings": dict(AUTOSCALING) if is_active else None,
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


NS_PER_S = 1_000_000_000
REPLICA_LENGTH = 5
"""A deployment's replica is named by a short id of this length."""

_BETWEEN_LINES_S = 0.01


def log_lines(deployment: StoredDeployment, *, until_ns: int) -> Iterator[LogRecord]:
    """Yield all lines up to and including ``until_ns`` (epoch nanoseconds), oldest first."""
    for start in starts(deployment):
        end_ns = until_ns if start.end is None else min(until_ns, epoch_ns(start.end))
        for after_s, level, messages in _parts(deployment):
            for number, message in enumerate(messages):
                stamp_ns = epoch_ns(start.begun) + round((after_s + number * _BETWEEN_LINES_S) * NS_PER_S)
                if epoch_ns(start.logs_from) <= stamp_ns <= end_ns:
                    is_replica = after_s in (LOADING_AFTER_S, DECIDED_AFTER_S)
                    yield LogRecord(
                        timestamp=str(stamp_ns),
                        message=message,
                        replica=_replica(deployment) if is_replica else None,
                        request_id=None,
                        level=level,
                    )


def _replica(deployment: StoredDeployment) -> str:
    return hashlib.sha256(deployment.id.encode()).hexdigest()[:REPLICA_LENGTH]


STARTUP_PHASES_S = (
    ("SCHEDULING", 0.0),
    ("IMAGE_PULL", 1.0),
    ("WEIGHT_DOWNLOAD", 2.0),
    ("CONTAINER_CREATE", 3.5),
    ("CONTAINER_START", LOADING_AFTER_S - DEPLOYING_AFTER_S),
    ("READINESS", DECIDED_AFTER_S - DEPLOYING_AFTER_S),
)
"""Phases of a replica's start, and when they begin, counted from the end of the build."""


def startup_fields(deployment: StoredDeployment, now: datetime) -> list[dict[str, Any]]:
    """Return the replicas' starts that have ended, the newest first."""
    failed = deployment.plan.failure is not None
    length_s = (FAILED_AFTER_S if failed else ACTIVE_AFTER_S) - DEPLOYING_AFTER_S
    startups = []
    for start in reversed(starts(deployment)):
        begun = start.begun + timedelta(seconds=DEPLOYING_AFTER_S)
        ended = begun + timedelta(seconds=length_s)
        if ended <= (start.end or now):
            startup = {
                "model_id": deployment.model_id,
                "deployment_id": deployment.id,
                "deployment_name": deployment.name,
                "environment_name": None,
                "replica_id": _replica(deployment),
                "started_at_epoch_millis": epoch_ms(begun),
                "ready_at_epoch_millis": None if failed else epoch_ms(ended),
                "duration_ms": _ms(length_s),
                "outcome": "FAILED" if failed else "SUCCESS",
                "phase_summary": _phases(length_s, failed),
            }
            startups.append(startup)
    return startups


def _phases(length_s: float, failed: bool) -> list[dict[str, Any]]:
    ends_s = [*(begin_s for _, begin_s in STARTUP_PHASES_S[1:]), length_s]
    return [
        {
            "phase": phase,
            "status": "FAILED" if failed and end_s == length_s else "COMPLETED",
            "offset_ms": _ms(begin_s),
            "duration_ms": None if failed and end_s == length_s else _ms(end_s - begin_s),
        }
        for (phase, begin_s), end_s in zip(STARTUP_PHASES_S, ends_s, strict=True)
    ]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _parts(deployment: StoredDeployment) -> Iterator[tuple[float, str, Sequence[str]]]:
    """Yield lines with their level, and when they begin, in seconds after a start."""
    plan = deployment.plan
    config: dict[str, Any] = json.loads(plan.truss_config)
    server, checkpoints = config["docker_server"], config["training_checkpoints"]
    building = [
        "This emulator only simulates the deployment; nothing is served.",
        f"Building {deployment.name} of {config['model_name']}",
        f"Base image {config['base_image']['image']}",
        *(f"Environment variable {name}" for name in config["environment_variables"]),
        *(f"Secret {name}" for name in config["secrets"]),
        "Build finished",
    ]
    deploying = [
        f"Scheduling one replica on {plan.instance_type_id}",
        *(
            f"Downloading {reference['training_job_id']}/{path} to {checkpoints['download_folder']}"
            for reference in checkpoints["artifact_references"]
            for path in reference["paths"]
        ),
    ]
    loading = [
        f"Starting: {server['start_command']}",
        "Initializing a V1 LLM engine (v0.11.0)",
        "Loading weights ...",
    ]
    yield 0.0, "INFO", building
    yield DEPLOYING_AFTER_S, "INFO", deploying
    yield LOADING_AFTER_S - 1, "WARNING", plan.warnings
    yield LOADING_AFTER_S, "INFO", loading
    if plan.failure is not None:
        yield DECIDED_AFTER_S, "ERROR", [plan.failure, "Engine core initialization failed."]
        yield FAILED_AFTER_S, "ERROR", ["Deployment failed: the server ended with exit code 1"]
        return
    starting = [
        "Loading weights took 3.42 seconds",
        "Graph capturing finished",
        f"Started server on port {server['server_port']}, route {server['predict_endpoint']}",
        f'"GET {server["readiness_endpoint"]} HTTP/1.1" 200 OK',
    ]
    yield DECIDED_AFTER_S, "INFO", starting
    names = ", ".join(plan.served_names)
    yield ACTIVE_AFTER_S, "INFO", [f"Deployment is active; requests name the model: {names}"]
