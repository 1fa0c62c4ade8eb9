"""All stored state of the organization, except the simulated jobs.

Only jobs can read the values of secrets. The database has only their names; each value is in a file that only
its owner may read, so that a copy or a dump of the database reveals nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from api_client.emulator.job_spec import CheckedJobSpec
from api_client.emulator.responses import new_id
from api_client.emulator.store.blobs import BlobStore
from api_client.emulator.store.database import Database, JobLogStore, MetricStore, Records
from api_client.emulator.store.deployments import StoredModel
from api_client.files import make_private_folder, write_private
from api_client.models import InteractiveSession, JobStatus, QueueEvent, Secret, Team, TrainingJob


class SecretStore:
    """Secrets by team and name: names in the database, values in files below ``folder``."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._names = Records(database, "secret_names", Secret)
        self._folder = folder
        make_private_folder(folder)

    def names(self, team: Team) -> list[Secret]:
        """Return the team's secrets, sorted by name, without values."""
        team_secrets = (secret for secret in self._names.all() if secret.team_name == team.name)
        return sorted(team_secrets, key=lambda secret: secret.name)

    def upsert(self, team: Team, name: str, value: str, now: datetime) -> Secret:
        path = self._path(team.id, name)
        write_private(path, value.encode())
        existing_secret = self._names.get(path.name)
        return existing_secret or self._names.put(
            path.name, Secret(id=new_id(), name=name, created_at=now, team_name=team.name)
        )

    def delete(self, team: Team, name: str) -> bool:
        """Delete a secret; return False if it did not exist."""
        path = self._path(team.id, name)
        path.unlink(missing_ok=True)
        return self._names.delete(path.name) is not None

    def value(self, team_id: str, name: str) -> str | None:
        """Return a secret's value for a team's job, or None if the team does not have it."""
        try:
            return self._path(team_id, name).read_bytes().decode()
        except FileNotFoundError:
            return None

    def _path(self, team_id: str, name: str) -> Path:
        """Return the secret's file, named by a hash because secret names may contain anything."""
        identity = f"{team_id}\0{name}".encode()
        return self._folder / hashlib.sha256(identity).hexdigest()


@dataclass(frozen=True, slots=True)
class TeamGpuLimit:
    max_gpus: int
    modified_at: datetime


class TeamStore:
    """Teams by id and name; the first one created is the default team."""

    def __init__(self, database: Database) -> None:
        self._teams = Records(database, "teams", Team)
        self._limits = Records(database, "team_gpu_limits", TeamGpuLimit)

    def ensure(self, name: str, now: datetime) -> Team:
        team = Team(id=new_id(), name=name, default=not self._teams.all(), created_at=now)
        return self.named(name) or self._teams.put(team.id, team)

    def all(self) -> list[Team]:
        """Return all teams, the default team first."""
        return sorted(self._teams.all(), key=lambda team: (not team.default, team.name))

    def named(self, name: str) -> Team | None:
        return next((team for team in self._teams.all() if team.name == name), None)

    def get(self, team_id: str) -> Team | None:
        return self._teams.get(team_id)

    def default(self) -> Team:
        return self.all()[0]

    def set_gpu_limit(self, team_id: str, gpu_type: str, max_gpus: int, now: datetime) -> None:
        self._limits.put(f"{team_id} {gpu_type}", TeamGpuLimit(max_gpus, now))

    def gpu_limit(self, team_id: str, gpu_type: str) -> TeamGpuLimit | None:
        """Return the team's limit; None if the organization's limit applies to the team."""
        return self._limits.get(f"{team_id} {gpu_type}")


Sessions = tuple[InteractiveSession, ...]
"""The interactive sessions of a job, one per node."""


def new_sessions(job_id: str, spec: CheckedJobSpec, now: datetime) -> Sessions:
    """Create a session for each node, if the job spec asks for sessions."""
    settings = spec.interactive_session
    if settings is None:
        return ()
    is_github = settings.auth_provider == "github"
    return tuple(
        InteractiveSession(
            id=new_id(),
            **settings.model_dump(include=set(type(settings).model_fields)),
            pod_name=f"node-{rank}",
            expires_at=now + timedelta(minutes=settings.timeout_minutes),
            tunnel_name=f"bt-session-{job_id}-{rank}",
            auth_code=f"EMU{secrets.token_hex(1).upper()}-{secrets.token_hex(2).upper()}",
            auth_url="https://github.com/login/device" if is_github else "https://microsoft.com/devicelogin",
            auth_code_generated_at=now,
            working_directory="/b10/workspace",
        )
        for rank in range(spec.compute.node_count)
    )


@dataclass(frozen=True, slots=True)
class StoredProject:
    id: str
    name: str
    team_id: str
    created_at: datetime
    updated_at: datetime
    is_deleted: bool = False


class ProjectStore:
    """Projects by id, or by name within a team. Ids of deleted projects are never reused."""

    def __init__(self, database: Database) -> None:
        self._projects = Records(database, "projects", StoredProject)

    def all(self) -> list[StoredProject]:
        return [project for project in self._projects.all() if not project.is_deleted]

    def get(self, project_id: str) -> StoredProject | None:
        project = self._projects.get(project_id)
        return None if project is None or project.is_deleted else project

    def named(self, name: str, team_id: str) -> StoredProject | None:
        return next(
            (project for project in self.all() if (project.name, project.team_id) == (name, team_id)), None
        )

    def was_named(self, name: str, team_id: str) -> bool:
        """Return True if the team has, or ever had, a project with that name."""
        return any((project.name, project.team_id) == (name, team_id) for project in self._projects.all())

    def add(self, project: StoredProject) -> None:
        """Add a project, unless its id is or was in use."""
        if project.id not in self._projects:
            self._projects.put(project.id, project)

    def touch(self, project_id: str, now: datetime) -> None:
        self._projects.put(project_id, replace(self._projects[project_id], updated_at=now))

    def delete(self, project_id: str) -> None:
        """Mark the project as deleted; its id can't be used again."""
        self._projects.put(project_id, replace(self._projects[project_id], is_deleted=True))


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job that runs on this machine: its API record, its spec, and its status changes, oldest first."""

    job: TrainingJob
    spec: Mapping[str, Any]
    events: tuple[QueueEvent, ...] = ()

    @property
    def has_run(self) -> bool:
        return any(event.status == JobStatus.RUNNING for event in self.events)

    def with_changes(self, changed_at: datetime, **changes: Any) -> StoredJob:
        return replace(self, job=self.job.model_copy(update={**changes, "updated_at": changed_at}))

    def with_status(
        self, status: JobStatus, changed_at: datetime, message: str | None, exit_code: int | None
    ) -> StoredJob:
        """Return the job with a new status, and an event for the change."""
        event = QueueEvent(
            training_job_id=self.job.id,
            training_job_name=self.job.name,
            status=status,
            created=changed_at,
            event_message=message,
            exit_code=exit_code,
        )
        changed_job = self.with_changes(changed_at, current_status=status, error_message=message)
        return replace(changed_job, events=(*self.events, event))


class Stores:
    """The stores of the organization, a store per kind of object."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        self.teams = TeamStore(database)
        self.projects = ProjectStore(database)
        self.secrets = SecretStore(database, data_dir / "secrets")
        self.sessions: Records[Sessions] = Records(database, "interactive_sessions", Sessions)
        self.blobs = BlobStore(data_dir / "blobs")
        self.models = Records(database, "served_models", StoredModel)
        self.jobs = Records(database, "local_jobs", StoredJob)
        self.logs = JobLogStore(database)
        self.metrics = MetricStore(database)

    def team_of(self, project_id: str) -> str:
        project = self.projects.get(project_id)
        return self.teams.default().id if project is None else project.team_id
