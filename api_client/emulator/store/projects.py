"""Training projects: names within teams."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from api_client.emulator.store.database import Database
from api_client.emulator.timestamps import iso, moment

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
    """Projects by id, and by name within a team. Deleted ids are remembered, so that none comes back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(SCHEMA)

    def all(self) -> list[StoredProject]:
        """Every project, oldest first."""
        rows = self._database.rows("SELECT * FROM projects WHERE NOT deleted ORDER BY created_at, id")
        return [_project(row) for row in rows]

    def get(self, project_id: str) -> StoredProject | None:
        """The project of that id, if there is one."""
        row = self._database.row("SELECT * FROM projects WHERE id = ? AND NOT deleted", (project_id,))
        return None if row is None else _project(row)

    def named(self, name: str, team_id: str) -> StoredProject | None:
        """The team's project of that name, if there is one."""
        row = self._database.row(
            "SELECT * FROM projects WHERE name = ? AND team_id = ? AND NOT deleted", (name, team_id)
        )
        return None if row is None else _project(row)

    def was_named(self, name: str, team_id: str) -> bool:
        """Whether the team has or ever had a project of that name."""
        row = self._database.row("SELECT 1 FROM projects WHERE name = ? AND team_id = ?", (name, team_id))
        return row is not None

    def add(self, project: StoredProject) -> None:
        """Add a project, unless its id is or was in use."""
        self.add_many([project])

    def add_many(self, projects: Iterable[StoredProject]) -> None:
        """Add projects, but for those whose ids are or were in use."""
        self._database.write_many(
            "INSERT OR IGNORE INTO projects (id, name, team_id, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (project.id, project.name, project.team_id, iso(project.created_at), iso(project.updated_at))
                for project in projects
            ],
        )

    def touch(self, project_id: str, now: datetime) -> None:
        """Note that something of the project changed."""
        self._database.write("UPDATE projects SET updated_at = ? WHERE id = ?", (iso(now), project_id))

    def delete(self, project_id: str) -> None:
        """Forget the project; its id stays taken."""
        self._database.write("UPDATE projects SET deleted = 1 WHERE id = ?", (project_id,))


def _project(row: sqlite3.Row) -> StoredProject:
    return StoredProject(
        id=row["id"],
        name=row["name"],
        team_id=row["team_id"],
        created_at=moment(row["created_at"]),
        updated_at=moment(row["updated_at"]),
    )
