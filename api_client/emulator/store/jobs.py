"""Training projects, local jobs, and the history of each job's statuses."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api_client.emulator.formats import iso, moment
from api_client.emulator.store.database import Database
from api_client.models import JobStatus, QueueEvent, TrainingJob
from api_client.models.jobs import is_finished

SCHEMA = """
CREATE TABLE IF NOT EXISTS projects (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, team_id TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted INTEGER NOT NULL DEFAULT 0
);
"""


@dataclass(frozen=True, slots=True)
class StoredProject:
    """A project without its jobs."""

    id: str
    name: str
    team_id: str
    created_at: datetime
    updated_at: datetime


class ProjectStore:
    """Projects by id, or by name within a team. Deleted ids are kept, so that none is reused."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(SCHEMA)

    def all(self) -> list[StoredProject]:
        rows = self._database.rows("SELECT * FROM projects WHERE NOT deleted ORDER BY created_at, id")
        return [_project(row) for row in rows]

    def get(self, project_id: str) -> StoredProject | None:
        row = self._database.row("SELECT * FROM projects WHERE id = ? AND NOT deleted", (project_id,))
        return None if row is None else _project(row)

    def named(self, name: str, team_id: str) -> StoredProject | None:
        row = self._database.row(
            "SELECT * FROM projects WHERE name = ? AND team_id = ? AND NOT deleted", (name, team_id)
        )
        return None if row is None else _project(row)

    def was_named(self, name: str, team_id: str) -> bool:
        """Return True if the team has, or ever had, a project with that name."""
        row = self._database.row("SELECT 1 FROM projects WHERE name = ? AND team_id = ?", (name, team_id))
        return row is not None

    def add(self, project: StoredProject) -> None:
        """Add a project, unless its id is or was in use."""
        self._database.insert(
            "projects",
            "IGNORE",
            id=project.id,
            name=project.name,
            team_id=project.team_id,
            created_at=iso(project.created_at),
            updated_at=iso(project.updated_at),
        )

    def touch(self, project_id: str, now: datetime) -> None:
        self._database.write("UPDATE projects SET updated_at = ? WHERE id = ?", (iso(now), project_id))

    def delete(self, project_id: str) -> None:
        """Mark the project as deleted; its id stays taken."""
        self._database.write("UPDATE projects SET deleted = 1 WHERE id = ?", (project_id,))


def _project(row: sqlite3.Row) -> StoredProject:
    return StoredProject(
        id=row["id"],
        name=row["name"],
        team_id=row["team_id"],
        created_at=moment(row["created_at"]),
        updated_at=moment(row["updated_at"]),
    )


_SCHEMA = """
CREATE TABLE IF NOT EXISTS local_jobs (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL UNIQUE, job TEXT NOT NULL,
    spec TEXT NOT NULL, started_at TEXT, finished_at TEXT
);
CREATE TABLE IF NOT EXISTS local_events (
    sequence INTEGER PRIMARY KEY, job_id TEXT NOT NULL, status TEXT NOT NULL, created TEXT NOT NULL,
    message TEXT, exit_code INTEGER
);
CREATE INDEX IF NOT EXISTS local_events_by_job ON local_events (job_id, sequence);
"""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A stored job: its API record, its spec, and when its processes ran."""

    sequence: int
    job: TrainingJob
    spec: Mapping[str, Any]
    started_at: datetime | None
    finished_at: datetime | None


class JobStore:
    """The table of local jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(_SCHEMA)

    def insert(self, job: TrainingJob, spec: Mapping[str, Any]) -> None:
        job = job.model_copy(update={"updated_at": job.created_at})
        self._database.insert("local_jobs", job_id=job.id, job=job.model_dump_json(), spec=json.dumps(spec))

    def exists(self, job_id: str) -> bool:
        return self._database.row("SELECT 1 FROM local_jobs WHERE job_id = ?", (job_id,)) is not None

    def get(self, job_id: str) -> StoredJob:
        row = self._database.row("SELECT * FROM local_jobs WHERE job_id = ?", (job_id,))
        if row is None:
            raise KeyError(job_id)
        return _stored_job(row)

    def all(self) -> list[StoredJob]:
        return [_stored_job(row) for row in self._database.rows("SELECT * FROM local_jobs ORDER BY sequence")]

    def unfinished(self) -> list[StoredJob]:
        return [row for row in self.all() if not is_finished(row.job.current_status)]

    def set_status(
        self, job_id: str, status: JobStatus, at: datetime, *, error_message: str | None = None
    ) -> None:
        """Set the status; also record when the job started or ended."""
        self._change(job_id, at, current_status=status, error_message=error_message)
        column = "started_at" if status == JobStatus.RUNNING else "finished_at"
        if status == JobStatus.RUNNING or is_finished(status):
            self._database.write(
                f"UPDATE local_jobs SET {column} = ? WHERE job_id = ?", (at.isoformat(), job_id)
            )

    def change(
        self, job_id: str, at: datetime, *, priority: int | None = None, availability_model: str | None = None
    ) -> None:
        """Change a waiting job; None leaves a field unchanged."""
        changes = {"priority": priority, "availability_model": availability_model}
        self._change(job_id, at, **{name: value for name, value in changes.items() if value is not None})

    def delete(self, job_ids: Sequence[str]) -> None:
        self._database.write_many(
            "DELETE FROM local_jobs WHERE job_id = ?", [(job_id,) for job_id in job_ids]
        )

    def _change(self, job_id: str, at: datetime, **changes: Any) -> None:
        with self._database.transaction():
            row = self._database.row("SELECT * FROM local_jobs WHERE job_id = ?", (job_id,))
            if row is not None:
                job = _stored_job(row).job.model_copy(update={**changes, "updated_at": at})
                self._database.write(
                    "UPDATE local_jobs SET job = ? WHERE job_id = ?", (job.model_dump_json(), job_id)
                )


def _stored_job(row: sqlite3.Row) -> StoredJob:
    job = TrainingJob.model_validate_json(row["job"])
    started, finished = (
        datetime.fromisoformat(stamp) if stamp else None for stamp in (row["started_at"], row["finished_at"])
    )
    return StoredJob(row["sequence"], job, json.loads(row["spec"]), started, finished)


class EventStore:
    """The table of status changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(_SCHEMA)

    def append(
        self, job_id: str, status: str, at: datetime, *, message: str | None, exit_code: int | None
    ) -> None:
        self._database.insert(
            "local_events",
            job_id=job_id,
            status=status,
            created=at.isoformat(),
            message=message,
            exit_code=exit_code,
        )

    def read(self, job_id: str, job_name: str | None) -> list[QueueEvent]:
        rows = self._database.rows("SELECT * FROM local_events WHERE job_id = ? ORDER BY sequence", (job_id,))
        return [
            QueueEvent(
                training_job_id=job_id,
                training_job_name=job_name,
                status=row["status"],
                created=datetime.fromisoformat(row["created"]),
                event_message=row["message"],
                exit_code=row["exit_code"],
            )
            for row in rows
        ]

    def delete(self, job_id: str) -> None:
        self._database.write("DELETE FROM local_events WHERE job_id = ?", (job_id,))
