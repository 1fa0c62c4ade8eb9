"""Served models and their deployments: stored as created; status and log are computed from the time.

A deployment is stored with its configuration and the times of its starts. Everything else is computed from
those times and now, as if the deployment ran on while no emulator is running.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api_client.clock import epoch_ms, epoch_ns
from api_client.models import LogRecord


@dataclass(frozen=True, slots=True)
class StoredDeployment:
    """A deployment of a model; it fails to start on a machine without GPUs."""

    id: str
    model_id: str
    number: int
    created_at: datetime
    machine_name: str
    config: Mapping[str, Any]
    """Content of the rendered config.yaml."""

    warnings: tuple[str, ...]
    starts: tuple[tuple[datetime, datetime | None], ...]
    """The times of each start and of the stop after it (None: not stopped)."""

    @property
    def name(self) -> str:
        return f"deployment-{self.number}"

    @property
    def replica(self) -> str:
        return hashlib.sha256(self.id.encode()).hexdigest()[:5]

    @property
    def fails(self) -> bool:
        return not self.config["resources"]["use_gpu"]

    def status_at(self, now: datetime) -> str:
        """Return the status at a time, one of the values that the API documents."""
        started_at, stopped_at = self.starts[-1]
        if stopped_at is not None:
            return "DEACTIVATING" if now - stopped_at < timedelta(seconds=3) else "INACTIVE"
        age_s = (now - started_at).total_seconds()
        reached = [status for status, after_s in STAGES_S.items() if after_s <= age_s]
        if reached == list(STAGES_S):
            return "DEPLOY_FAILED" if self.fails else "ACTIVE"
        return reached[-1] if reached else "BUILDING"  # the clock may have been set back


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model: a name within a team, and its deployments, the newest first."""

    id: str
    team_id: str
    name: str
    created_at: datetime
    deployments: tuple[StoredDeployment, ...] = ()
    deployments_made: int = 0
    production_id: str | None = None

    @property
    def production(self) -> StoredDeployment | None:
        matches = (deployment for deployment in self.deployments if deployment.id == self.production_id)
        return next(matches, None)


STAGES_S = {"BUILDING": 0.0, "DEPLOYING": 4.0, "LOADING_MODEL": 8.0, "ACTIVE": 15.0}
"""Statuses after a start, and the seconds until they begin. DEPLOY_FAILED may come instead of ACTIVE."""


def _stage_lines(deployment: StoredDeployment) -> dict[str, list[tuple[str, str]]]:
    """Return the level and the text of the lines that each stage logs as it begins."""
    config, machine = deployment.config, deployment.machine_name
    server_config, checkpoint_config = config["docker_server"], config["training_checkpoints"]
    building_lines = [
        "This emulator only simulates the deployment; nothing is served.",
        f"Building {deployment.name} of {config['model_name']}",
        f"Base image {config['base_image']['image']}",
        *(f"Environment variable {name}" for name in config["environment_variables"]),
        *(f"Secret {name}" for name in config["secrets"]),
    ]
    deploying_lines = [
        f"Scheduling one replica on {machine}",
        *(
            f"Downloading {reference['training_job_id']}/{path} to {checkpoint_config['download_folder']}"
            for reference in checkpoint_config["artifact_references"]
            for path in reference["paths"]
        ),
    ]
    served_name = config["model_metadata"]["example_model_input"]["model"]
    last_line = ("INFO", f"Deployment is active; requests name the model: {served_name}")
    if deployment.fails:
        last_line = ("ERROR", f"RuntimeError: Failed to infer device type: {machine} has no GPU")
    return {
        "BUILDING": [("INFO", text) for text in building_lines],
        "DEPLOYING": [("INFO", text) for text in deploying_lines],
        "LOADING_MODEL": [
            *(("WARNING", text) for text in deployment.warnings),
            ("INFO", f"Starting: {server_config['start_command']}"),
        ],
        "ACTIVE": [last_line],
    }


def log_lines(deployment: StoredDeployment, *, until_ns: int) -> Iterator[LogRecord]:
    """Yield all lines up to and including ``until_ns`` (epoch nanoseconds), oldest first."""
    for started_at, stopped_at in deployment.starts:
        end_ns = until_ns if stopped_at is None else min(until_ns, epoch_ns(stopped_at))
        for stage, lines in _stage_lines(deployment).items():
            for number, (level, message) in enumerate(lines):
                stamp_ns = epoch_ns(started_at) + round((STAGES_S[stage] + number / 100) * 1e9)
                if stamp_ns <= end_ns:
                    yield LogRecord(
                        timestamp=str(stamp_ns),
                        message=message,
                        replica=deployment.replica if stage in ("LOADING_MODEL", "ACTIVE") else None,
                        request_id=None,
                        level=level,
                    )


def model_fields(model: StoredModel, team_name: str) -> dict[str, Any]:
    production = model.production
    return {
        "id": model.id,
        "created_at": model.created_at,
        "name": model.name,
        "deployments_count": len(model.deployments),
        "production_deployment_id": production.id if production else None,
        "development_deployment_id": None,
        "instance_type_name": production.machine_name if production else "",
        "team_name": team_name,
    }


def deployment_fields(model: StoredModel, deployment: StoredDeployment, now: datetime) -> dict[str, Any]:
    is_active = deployment.status_at(now) == "ACTIVE"
    is_production = deployment.id == model.production_id
    autoscaling = {
        "min_replica": 0,
        "max_replica": 1,
        "autoscaling_window": 60,
        "scale_down_delay": 900,
        "concurrency_target": 32,
        "target_utilization_percentage": 70,
    }
    return {
        "id": deployment.id,
        "created_at": deployment.created_at,
        "name": deployment.name,
        "model_id": model.id,
        "is_production": is_production,
        "is_development": False,
        "status": deployment.status_at(now),
        "active_replica_count": int(is_active),
        "autoscaling_settings": autoscaling if is_active else None,
        "instance_type_name": deployment.machine_name,
        "environment": "production" if is_production else None,
        "labels": None,
        "request_backpressure_settings": {"policy": None},
    }


def startup_fields(deployment: StoredDeployment, now: datetime) -> list[dict[str, Any]]:
    """Return the completed startups of replicas, newest first."""
    failed = deployment.fails
    _, deploying_s, loading_s, active_s = STAGES_S.values()
    image_pull = {"phase": "IMAGE_PULL", "status": "COMPLETED", "offset_ms": 0}
    container_start = {"phase": "CONTAINER_START", "status": "FAILED" if failed else "COMPLETED"}
    container_start_ms = None if failed else round((active_s - loading_s) * 1000)
    phases = [
        image_pull | {"duration_ms": round((loading_s - deploying_s) * 1000)},
        container_start
        | {"offset_ms": round((loading_s - deploying_s) * 1000), "duration_ms": container_start_ms},
    ]
    return [
        {
            "model_id": deployment.model_id,
            "deployment_id": deployment.id,
            "deployment_name": deployment.name,
            "environment_name": None,
            "replica_id": deployment.replica,
            "started_at_epoch_millis": epoch_ms(started_at + timedelta(seconds=deploying_s)),
            "ready_at_epoch_millis": None if failed else epoch_ms(started_at + timedelta(seconds=active_s)),
            "duration_ms": round((active_s - deploying_s) * 1000),
            "outcome": "FAILED" if failed else "SUCCESS",
            "phase_summary": phases,
        }
        for started_at, stopped_at in reversed(deployment.starts)
        if started_at + timedelta(seconds=active_s) <= (stopped_at or now)
    ]
