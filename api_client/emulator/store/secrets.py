"""Secrets of the teams. Their values go to the jobs that name them and are never answered.

The database knows the names alone. Each value lies in a file of its own that only its owner may read, so
that a copy or a dump of the database gives nothing away.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

from api_client.emulator.ids import new_id
from api_client.emulator.private_files import make_private_folder, write_private
from api_client.emulator.store.database import Database
from api_client.emulator.timestamps import iso, moment
from api_client.models import Secret, Team

SCHEMA = """
CREATE TABLE IF NOT EXISTS secret_names (
    id TEXT PRIMARY KEY, team_id TEXT NOT NULL, name TEXT NOT NULL, created_at TEXT NOT NULL,
    UNIQUE (team_id, name)
);
"""


class SecretStore:
    """Secrets by team and name: names in the database, values in files below ``folder``."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        make_private_folder(folder)
        database.create(SCHEMA)

    def names(self, team: Team) -> list[Secret]:
        """The team's secrets by name, without values."""
        rows = self._database.rows(
            "SELECT id, name, created_at FROM secret_names WHERE team_id = ? ORDER BY name", (team.id,)
        )
        return [
            Secret(id=row["id"], name=row["name"], created_at=moment(row["created_at"]), team_name=team.name)
            for row in rows
        ]

    def upsert(self, team: Team, name: str, value: str, now: datetime) -> Secret:
        """Set a secret's value, making the secret if need be."""
        write_private(self._path(team.id, name), value.encode(errors="surrogatepass"))
        self._database.write(
            "INSERT INTO secret_names (id, team_id, name, created_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (team_id, name) DO NOTHING",
            (new_id(), team.id, name, iso(now)),
        )
        return next(secret for secret in self.names(team) if secret.name == name)

    def delete(self, team: Team, name: str) -> bool:
        """Forget a secret; false if there was none."""
        existed = any(secret.name == name for secret in self.names(team))
        self._database.write("DELETE FROM secret_names WHERE team_id = ? AND name = ?", (team.id, name))
        self._path(team.id, name).unlink(missing_ok=True)
        return existed

    def value(self, team_id: str, name: str) -> str | None:
        """A secret's value for a job of that team (API facts, 2.3); None if the team has none of the name."""
        try:
            return self._path(team_id, name).read_bytes().decode(errors="surrogatepass")
        except FileNotFoundError:
            return None

    def _path(self, team_id: str, name: str) -> Path:
        """Names may hold anything, so the file is called by their hash."""
        subject = f"{team_id}\0{name}".encode(errors="surrogatepass")
        return self._folder / hashlib.sha256(subject).hexdigest()
