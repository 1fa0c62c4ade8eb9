"""Training projects, local jobs, and the history of each job's statuses."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api_client.emulator.formats import iso, moment
from api_client.emulator.store.database import Database
from api_client.models import InstanceType, JobStatus, ProjectSummary, QueueEvent, TrainingJob, User
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
        self.add_many([project])

    def add_many(self, projects: Iterable[StoredProject]) -> None:
        self._database.write_many(
            "INSERT OR IGNORE INTO projects (id, name, team_id, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (project.id, project.name, project.team_id, iso(project.created_at), iso(project.updated_at))
                for project in projects
            ],
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
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    project_name TEXT NOT NULL,
    name TEXT,
    spec TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    node_count INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    availability_model TEXT NOT NULL,
    user_email TEXT,
    status TEXT NOT NULL,
    error_message TEXT,
    checkpoint_sync_status TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    finished_at TEXT
);
CREATE INDEX IF NOT EXISTS local_jobs_by_project ON local_jobs (project_id);
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
        project = job.training_project or ProjectSummary(id=job.training_project_id)
        created = _stamp(job.created_at)
        self._database.write(
            "INSERT INTO local_jobs (job_id, project_id, project_name, name, spec, instance_type, node_count,"
            " priority, availability_model, user_email, status, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                job.id,
                project.id,
                project.name,
                job.name,
                json.dumps(spec),
                job.instance_type.model_dump_json(),
                job.node_count or 1,
                job.priority or 0,
                job.availability_model or "dedicated",
                job.user.email if job.user else None,
                job.current_status,
                created,
                created,
            ),
        )

    def exists(self, job_id: str) -> bool:
        return self._database.row("SELECT 1 FROM local_jobs WHERE job_id = ?", (job_id,)) is not None

    def get(self, job_id: str) -> StoredJob:
        row = self._database.row("SELECT * FROM local_jobs WHERE job_id = ?", (job_id,))
        if row is None:
            raise KeyError(job_id)
        return _job_row(row)

    def all(self) -> list[StoredJob]:
        return [_job_row(row) for row in self._database.rows("SELECT * FROM local_jobs ORDER BY sequence")]

    def unfinished(self) -> list[StoredJob]:
        return [row for row in self.all() if not is_finished(row.job.current_status)]

    def set_status(
        self, job_id: str, status: JobStatus, at: datetime, *, error_message: str | None = None
    ) -> None:
        """Set the status; also record when the job started or ended."""
        column = {JobStatus.RUNNING: "started_at"}.get(status, "finished_at" if is_finished(status) else None)
        moment = _stamp(at)
        self._database.write(
            "UPDATE local_jobs SET status = ?, updated_at = ?, error_message = ?"
            + (f", {column} = ?" if column else "")
            + " WHERE job_id = ?",
            (status, moment, error_message, *([moment] if column else []), job_id),
        )

    def change(
        self, job_id: str, at: datetime, *, priority: int | None = None, availability_model: str | None = None
    ) -> None:
        """Change a waiting job; None leaves a field unchanged."""
        self._database.write(
            "UPDATE local_jobs SET priority = coalesce(?, priority),"
            " availability_model = coalesce(?, availability_model), updated_at = ? WHERE job_id = ?",
            (priority, availability_model, _stamp(at), job_id),
        )

    def delete(self, job_ids: Sequence[str]) -> None:
        self._database.write_many(
            "DELETE FROM local_jobs WHERE job_id = ?", [(job_id,) for job_id in job_ids]
        )


def _job_row(row: sqlite3.Row) -> StoredJob:
    project = ProjectSummary(id=row["project_id"], name=row["project_name"])
    job = TrainingJob(
        id=row["job_id"],
        current_status=row["status"],
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        training_project_id=project.id,
        training_project=project,
        instance_type=InstanceType.model_validate_json(row["instance_type"]),
        name=row["name"],
        error_message=row["error_message"],
        checkpoint_sync_status=row["checkpoint_sync_status"],
        priority=row["priority"],
        availability_model=row["availability_model"],
        user=User(email=row["user_email"]) if row["user_email"] else None,
        node_count=row["node_count"],
    )
    return StoredJob(
        row["sequence"], job, json.loads(row["spec"]), _moment(row["started_at"]), _moment(row["finished_at"])
    )


def _stamp(moment: datetime | None) -> str:
    if moment is None:
        raise ValueError("a stored job has all its stamps")
    return moment.isoformat()


def _moment(stamp: str | None) -> datetime | None:
    return datetime.fromisoformat(stamp) if stamp else None


_EVENTS_SCHEMA = """
CREATE TABLE IF NOT EXISTS local_events (
    sequence INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created TEXT NOT NULL,
    message TEXT,
    exit_code INTEGER
);
CREATE INDEX IF NOT EXISTS local_events_by_job ON local_events (job_id, sequence);
"""


class EventStore:
    """The table of status changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(_EVENTS_SCHEMA)

    def append(
        self, job_id: str, status: str, at: datetime, *, message: str | None, exit_code: int | None
    ) -> None:
        self._database.write(
            "INSERT INTO local_events (job_id, status, created, message, exit_code) VALUES (?, ?, ?, ?, ?)",
            (job_id, status, at.isoformat(), message, exit_code),
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
