"""The teams of the emulated organisation, and the GPU limits set for them."""

from __future__ import annotations

from datetime import datetime

from api_client.emulator.ids import new_id
from api_client.emulator.store.database import Database
from api_client.emulator.timestamps import iso, moment
from api_client.models import Team

SCHEMA = """
CREATE TABLE IF NOT EXISTS teams (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, is_default INTEGER NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS team_gpu_limits (
    team_id TEXT NOT NULL, gpu_type TEXT NOT NULL, max_gpus INTEGER NOT NULL,
    modified_at TEXT NOT NULL, PRIMARY KEY (team_id, gpu_type)
);
"""


class TeamStore:
    """Teams by id and name; the first one made is the default team."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(SCHEMA)

    def ensure(self, name: str, now: datetime) -> Team:
        """The team of that name, made if need be."""
        found = self.named(name)
        if found is not None:
            return found
        is_default = not self.all()
        self._database.write(
            "INSERT INTO teams (id, name, is_default, created_at) VALUES (?, ?, ?, ?)",
            (new_id(), name, int(is_default), iso(now)),
        )
        made = self.named(name)
        assert made is not None
        return made

    def all(self) -> list[Team]:
        """Every team, the default one first."""
        rows = self._database.rows("SELECT * FROM teams ORDER BY is_default DESC, name")
        return [
            Team(
                id=row["id"],
                name=row["name"],
                default=bool(row["is_default"]),
                created_at=moment(row["created_at"]),
            )
            for row in rows
        ]

    def named(self, name: str) -> Team | None:
        """The team of that name, if there is one."""
        return next((team for team in self.all() if team.name == name), None)

    def get(self, team_id: str) -> Team | None:
        """The team of that id, if there is one."""
        return next((team for team in self.all() if team.id == team_id), None)

    def default(self) -> Team:
        """The team that is meant when none is named."""
        return self.all()[0]

    def set_gpu_limit(self, team_id: str, gpu_type: str, max_gpus: int, now: datetime) -> None:
        """Set how many GPUs of a type a team may use at once."""
        self._database.write(
            "INSERT OR REPLACE INTO team_gpu_limits (team_id, gpu_type, max_gpus, modified_at)"
            " VALUES (?, ?, ?, ?)",
            (team_id, gpu_type, max_gpus, iso(now)),
        )

    def gpu_limits(self) -> dict[tuple[str, str], tuple[int, datetime]]:
        """Limits that were set: (team id, GPU type) → (most GPUs at once, when it was set)."""
        rows = self._database.rows("SELECT * FROM team_gpu_limits")
        return {
            (row["team_id"], row["gpu_type"]): (row["max_gpus"], moment(row["modified_at"])) for row in rows
        }
