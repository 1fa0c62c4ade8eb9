"""Training projects, and local jobs with the history of their statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from api_client.emulator.store.database import Database, Records
from api_client.models import JobStatus, QueueEvent, TrainingJob


@dataclass(frozen=True, slots=True)
class StoredProject:
    id: str
    name: str
    team_id: str
    created_at: datetime
    updated_at: datetime
    is_deleted: bool = False


class ProjectStore:
    """Projects by id, or by name within a team. Deleted ids are kept, so that none is reused."""

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
        """Mark the project as deleted; its id stays taken."""
        self._projects.put(project_id, replace(self._projects[project_id], is_deleted=True))


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A stored job: its API record, its spec, and its status changes, oldest first."""

    sequence: int
    job: TrainingJob
    spec: Mapping[str, Any]
    events: tuple[QueueEvent, ...] = ()

    @property
    def has_run(self) -> bool:
        return any(event.status == JobStatus.RUNNING for event in self.events)


class JobStore:
    """Local jobs by id, oldest first."""

    def __init__(self, database: Database) -> None:
        self._jobs = Records(database, "local_jobs", StoredJob)

    def add(self, job: TrainingJob, spec: Mapping[str, Any]) -> None:
        sequence = 1 + max((row.sequence for row in self._jobs.all()), default=0)
        self._jobs.put(job.id, StoredJob(sequence, job, spec))

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._jobs

    def get(self, job_id: str) -> StoredJob:
        """Return a job; raise KeyError if there is none."""
        return self._jobs[job_id]

    def all(self) -> list[StoredJob]:
        return self._jobs.all()

    def set_status(
        self,
        job_id: str,
        status: JobStatus,
        at: datetime,
        *,
        message: str | None = None,
        exit_code: int | None = None,
    ) -> None:
        """Change the status and add the change to the job's history."""
        row = self.get(job_id)
        event = QueueEvent(
            training_job_id=job_id,
            training_job_name=row.job.name,
            status=status,
            created=at,
            event_message=message,
            exit_code=exit_code,
        )
        self._jobs.put(job_id, replace(row, events=(*row.events, event)))
        self.change(job_id, at, current_status=status, error_message=message)

    def change(self, job_id: str, at: datetime, **changes: Any) -> None:
        row = self.get(job_id)
        job = row.job.model_copy(update={**changes, "updated_at": at})
        self._jobs.put(job_id, replace(row, job=job))

    def delete(self, job_id: str) -> None:
        self._jobs.delete(job_id)
