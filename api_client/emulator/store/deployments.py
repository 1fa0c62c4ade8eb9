"""Served models and their deployments: stored as decided, with a status and a log that follow from the time.

A deployment is stored with its configuration, whether it will fail, and the changes requested since. The rest
depends on when these happened, so it changes with the clock even while no emulator is running.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from api_client.clock import epoch_ms
from api_client.emulator.catalog import instance
from api_client.emulator.formats import epoch_ns, iso, new_id
from api_client.emulator.store.database import Database, Records
from api_client.models import LogRecord


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The decisions made when a deployment is requested.

    ``truss_config`` is the rendered configuration as JSON text. ``served_names`` are the model names that
    requests use. ``warnings`` go to the log. ``failure`` is the reason why it will not start, None if it
    will.
    """

    instance_type_id: str
    truss_config: str
    served_names: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was requested: start again (built again or not), or stop."""

    at: datetime
    kind: Literal["retry", "activate", "deactivate"]


@dataclass(frozen=True, slots=True)
class StoredDeployment:
    """A deployment of a model. A model's first deployment is its production deployment."""

    id: str
    model_id: str
    number: int
    created_at: datetime
    is_production: bool
    plan: DeploymentPlan
    changes: tuple[Change, ...] = ()

    @property
    def name(self) -> str:
        return f"deployment-{self.number}"

    @property
    def machine_name(self) -> str:
        try:
            return instance(self.plan.instance_type_id).name
        except LookupError:  # deployed by another version with other instance types
            return self.plan.instance_type_id

    @property
    def replica(self) -> str:
        return hashlib.sha256(self.id.encode()).hexdigest()[:5]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model: a name within a team, and its deployments, the newest first."""

    id: str
    team_id: str
    name: str
    created_at: datetime
    deployments: tuple[StoredDeployment, ...] = ()
    deployments_made: int = 0

    @property
    def production(self) -> StoredDeployment | None:
        return next((deployment for deployment in self.deployments if deployment.is_production), None)


class DeploymentStore:
    """The served models, oldest first, which also deploying in several threads leaves whole."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.models = Records(database, "served_models", StoredModel)

    def add(self, model_name: str, team_id: str, plan: DeploymentPlan, now: datetime) -> StoredDeployment:
        with self._database.transaction():  # one deployment at a time
            models = {(model.team_id, model.name): model for model in self.models.all()}
            model = models.get((team_id, model_name)) or StoredModel(new_id(), team_id, model_name, now)
            number = model.deployments_made + 1
            made = StoredDeployment(new_id(), model.id, number, now, model.production is None, plan)
            deployments = (made, *model.deployments)
            self.models.put(model.id, replace(model, deployments=deployments, deployments_made=number))
        return made

    def change(self, model_id: str, changed: Callable[[StoredDeployment], StoredDeployment | None]) -> None:
        """Replace each deployment of the model by what ``changed`` returns; None deletes it."""
        with self._database.transaction():
            if (model := self.models.get(model_id)) is not None:
                deployments = tuple(filter(None, map(changed, model.deployments)))
                self.models.put(model_id, replace(model, deployments=deployments))


LOADING_AFTER_S = 8.0
PHASES_S = {
    "SCHEDULING": 4.0,
    "IMAGE_PULL": 5.0,
    "WEIGHT_DOWNLOAD": 6.0,
    "CONTAINER_CREATE": 7.5,
    "CONTAINER_START": LOADING_AFTER_S,
    "READINESS": 11.0,
}
"""Phases of a replica's start, after the build, and the seconds at which they begin."""

Stage = tuple[float, str | None, str, Sequence[str]]
"""Seconds after a start, the status from then on (None: the same), and the level and the lines of its log."""


def stages(deployment: StoredDeployment) -> list[Stage]:
    """Return the life of a deployment after each start."""
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
    begun: list[Stage] = [
        (0.0, "BUILDING", "INFO", building),
        (PHASES_S["SCHEDULING"], "DEPLOYING", "INFO", deploying),
        (LOADING_AFTER_S - 1, None, "WARNING", plan.warnings),
        (LOADING_AFTER_S, "LOADING_MODEL", "INFO", loading),
    ]
    if plan.failure is not None:
        failing = [plan.failure, "Engine core initialization failed."]
        failed = ["Deployment failed: the server ended with exit code 1"]
        return [*begun, (11.0, None, "ERROR", failing), (12.0, "DEPLOY_FAILED", "ERROR", failed)]
    starting = [
        "Loading weights took 3.42 seconds",
        "Graph capturing finished",
        f"Started server on port {server['server_port']}, route {server['predict_endpoint']}",
        f'"GET {server["readiness_endpoint"]} HTTP/1.1" 200 OK',
    ]
    active = [f"Deployment is active; requests name the model: {', '.join(plan.served_names)}"]
    return [*begun, (11.0, None, "INFO", starting), (15.0, "ACTIVE", "INFO", active)]


def starts(deployment: StoredDeployment) -> list[tuple[datetime, datetime | None]]:
    """Return when each start began and was ended, the oldest first."""
    times: list[tuple[datetime, datetime | None]] = [(deployment.created_at, None)]
    for change in deployment.changes:
        begun, ended = times[-1]
        times[-1] = begun, ended or change.at
        if change.kind != "deactivate":
            times.append((change.at, None))
    return times


def status_at(deployment: StoredDeployment, now: datetime) -> str:
    """Return the status at that moment, a documented value."""
    begun, ended = starts(deployment)[-1]
    if ended is not None:
        return "DEACTIVATING" if now - ended < timedelta(seconds=3) else "INACTIVE"
    age_s = (now - begun).total_seconds()  # negative if the clock was set back
    entered = [status for after_s, status, _, _ in stages(deployment) if status and after_s <= age_s]
    return entered[-1] if entered else "BUILDING"


def log_lines(deployment: StoredDeployment, *, until_ns: int) -> Iterator[LogRecord]:
    """Yield all lines up to and including ``until_ns`` (epoch nanoseconds), oldest first."""
    for begun, ended in starts(deployment):
        end_ns = until_ns if ended is None else min(until_ns, epoch_ns(ended))
        for after_s, _, level, messages in stages(deployment):
            for number, message in enumerate(messages):
                stamp_ns = epoch_ns(begun) + round((after_s + number / 100) * 1e9)
                if stamp_ns <= end_ns:
                    yield LogRecord(
                        timestamp=str(stamp_ns),
                        message=message,
                        replica=deployment.replica if after_s >= LOADING_AFTER_S else None,
                        request_id=None,
                        level=level,
                    )


def deployment_fields(deployment: StoredDeployment, now: datetime) -> dict[str, Any]:
    status = status_at(deployment, now)
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
        "created_at": iso(deployment.created_at),
        "name": deployment.name,
        "model_id": deployment.model_id,
        "is_production": deployment.is_production,
        "is_development": False,
        "status": status,
        "active_replica_count": int(status == "ACTIVE"),
        "autoscaling_settings": autoscaling if status == "ACTIVE" else None,
        "instance_type_name": deployment.machine_name,
        "environment": "production" if deployment.is_production else None,
        "labels": None,
        "request_backpressure_settings": {"policy": None},
    }


def startup_fields(deployment: StoredDeployment, now: datetime) -> list[dict[str, Any]]:
    """Return the replicas' starts that have ended, the newest first."""
    failed, first_s, last_s = (
        deployment.plan.failure is not None,
        min(PHASES_S.values()),
        stages(deployment)[-1][0],
    )
    bounds_s = [*PHASES_S.values(), last_s]
    phases = [
        {
            "phase": phase,
            "status": "FAILED" if failed and end_s == last_s else "COMPLETED",
            "offset_ms": round((begin_s - first_s) * 1000),
            "duration_ms": None if failed and end_s == last_s else round((end_s - begin_s) * 1000),
        }
        for (phase, begin_s), end_s in zip(PHASES_S.items(), bounds_s[1:], strict=True)
    ]
    return [
        {
            "model_id": deployment.model_id,
            "deployment_id": deployment.id,
            "deployment_name": deployment.name,
            "environment_name": None,
            "replica_id": deployment.replica,
            "started_at_epoch_millis": epoch_ms(begun + timedelta(seconds=first_s)),
            "ready_at_epoch_millis": None if failed else epoch_ms(begun + timedelta(seconds=last_s)),
            "duration_ms": round((last_s - first_s) * 1000),
            "outcome": "FAILED" if failed else "SUCCESS",
            "phase_summary": phases,
        }
        for begun, ended in reversed(starts(deployment))
        if begun + timedelta(seconds=last_s) <= (ended or now)
    ]
