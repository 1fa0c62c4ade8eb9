"""Secrets of the teams. Their values go to the jobs that name them and are never answered."""

from __future__ import annotations

from datetime import datetime

from api_client.emulator.ids import new_id
from api_client.emulator.store.database import Database
from api_client.emulator.timestamps import iso, moment
from api_client.models import Secret, Team

SCHEMA = """
CREATE TABLE IF NOT EXISTS secrets (
    id TEXT PRIMARY KEY, team_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    created_at TEXT NOT NULL, UNIQUE (team_id, name)
);
"""


class SecretStore:
    """Secrets by team and name, in a file that only its owner may read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(SCHEMA)

    def names(self, team: Team) -> list[Secret]:
        """The team's secrets by name, without values."""
        rows = self._database.rows(
            "SELECT id, name, created_at FROM secrets WHERE team_id = ? ORDER BY name", (team.id,)
        )
        return [
            Secret(id=row["id"], name=row["name"], created_at=moment(row["created_at"]), team_name=team.name)
            for row in rows
        ]

    def upsert(self, team: Team, name: str, value: str, now: datetime) -> Secret:
        """Set a secret's value, making the secret if need be."""
        self._database.write(
            "INSERT INTO secrets (id, team_id, name, value, created_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (team_id, name) DO UPDATE SET value = excluded.value",
            (new_id(), team.id, name, value, iso(now)),
        )
        return next(secret for secret in self.names(team) if secret.name == name)

    def delete(self, team: Team, name: str) -> bool:
        """Forget a secret; false if there was none."""
        existed = any(secret.name == name for secret in self.names(team))
        self._database.write("DELETE FROM secrets WHERE team_id = ? AND name = ?", (team.id, name))
        return existed

    def value(self, name: str) -> str | None:
        """A secret's value for a job: the default team's if it has one of that name, else any team's."""
        row = self._database.row(
            "SELECT value FROM secrets LEFT JOIN teams ON teams.id = secrets.team_id"
            " WHERE secrets.name = ? ORDER BY teams.is_default DESC LIMIT 1",
            (name,),
        )
        return None if row is None else str(row["value"])
