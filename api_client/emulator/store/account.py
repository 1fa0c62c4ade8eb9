"""Teams, their secrets, and interactive sessions. Secret values go only to jobs that name them.

The database holds only the names of secrets. Each value is in a separate file that only its owner may read,
so that a copy or a dump of the database reveals nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from pathlib import Path

from api_client.emulator.data_folder import make_private_folder, write_private
from api_client.emulator.formats import iso, moment, new_id
from api_client.emulator.store.database import Database
from api_client.models import InteractiveSession, Secret, Team

SECRETS_SCHEMA = """
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
        database.create(SECRETS_SCHEMA)

    def names(self, team: Team) -> list[Secret]:
        """Return the team's secrets, sorted by name, without values."""
        rows = self._database.rows(
            "SELECT id, name, created_at FROM secret_names WHERE team_id = ? ORDER BY name", (team.id,)
        )
        return [
            Secret(id=row["id"], name=row["name"], created_at=moment(row["created_at"]), team_name=team.name)
            for row in rows
        ]

    def upsert(self, team: Team, name: str, value: str, now: datetime) -> Secret:
        """Set a secret's value, creating the secret if necessary."""
        write_private(self._path(team.id, name), value.encode(errors="surrogatepass"))
        self._database.insert(
            "secret_names", "IGNORE", id=new_id(), team_id=team.id, name=name, created_at=iso(now)
        )
        return next(secret for secret in self.names(team) if secret.name == name)

    def delete(self, team: Team, name: str) -> bool:
        """Delete a secret; return False if it did not exist."""
        existed = any(secret.name == name for secret in self.names(team))
        self._database.write("DELETE FROM secret_names WHERE team_id = ? AND name = ?", (team.id, name))
        self._path(team.id, name).unlink(missing_ok=True)
        return existed

    def value(self, team_id: str, name: str) -> str | None:
        """Return a secret's value for a team's job (API facts, 2.3), or None if the team does not have it."""
        try:
            return self._path(team_id, name).read_bytes().decode(errors="surrogatepass")
        except FileNotFoundError:
            return None

    def _path(self, team_id: str, name: str) -> Path:
        """Return the secret's file, named by a hash because secret names may contain anything."""
        subject = f"{team_id}\0{name}".encode(errors="surrogatepass")
        return self._folder / hashlib.sha256(subject).hexdigest()


TEAMS_SCHEMA = """
CREATE TABLE IF NOT EXISTS teams (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, is_default INTEGER NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS team_gpu_limits (
    team_id TEXT NOT NULL, gpu_type TEXT NOT NULL, max_gpus INTEGER NOT NULL,
    modified_at TEXT NOT NULL, PRIMARY KEY (team_id, gpu_type)
);
"""


class TeamStore:
    """Teams by id and name; the first one created is the default team."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(TEAMS_SCHEMA)

    def ensure(self, name: str, now: datetime) -> Team:
        """Return the team with that name, creating it if necessary."""
        found = self.named(name)
        if found is not None:
            return found
        self._database.insert("teams", id=new_id(), name=name, is_default=not self.all(), created_at=iso(now))
        made = self.named(name)
        assert made is not None
        return made

    def all(self) -> list[Team]:
        """Return all teams, the default team first."""
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
        return next((team for team in self.all() if team.name == name), None)

    def get(self, team_id: str) -> Team | None:
        return next((team for team in self.all() if team.id == team_id), None)

    def default(self) -> Team:
        """Return the team used when none is named."""
        return self.all()[0]

    def set_gpu_limit(self, team_id: str, gpu_type: str, max_gpus: int, now: datetime) -> None:
        self._database.insert(
            "team_gpu_limits",
            "REPLACE",
            team_id=team_id,
            gpu_type=gpu_type,
            max_gpus=max_gpus,
            modified_at=iso(now),
        )

    def gpu_limits(self) -> dict[tuple[str, str], tuple[int, datetime]]:
        """Return the limits that were set: (team id, GPU type) → (maximum GPUs, when it was set)."""
        rows = self._database.rows("SELECT * FROM team_gpu_limits")
        return {
            (row["team_id"], row["gpu_type"]): (row["max_gpus"], moment(row["modified_at"])) for row in rows
        }


SESSIONS_SCHEMA = """
CREATE TABLE IF NOT EXISTS interactive_sessions (
    id TEXT PRIMARY KEY, job_id TEXT NOT NULL, node_rank INTEGER NOT NULL, session TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS interactive_sessions_by_job ON interactive_sessions (job_id, node_rank);
"""

AUTH_URLS = {
    "github": "https://github.com/login/device",
    "microsoft": "https://microsoft.com/devicelogin",
}


class SessionStore:
    """Sessions by id and by job."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(SESSIONS_SCHEMA)

    def open(
        self,
        job_id: str,
        *,
        node_count: int,
        trigger: str,
        timeout_minutes: int,
        session_provider: str,
        auth_provider: str,
        now: datetime,
    ) -> None:
        for rank in range(node_count):
            session = InteractiveSession(
                id=new_id(),
                trigger=trigger,
                timeout_minutes=timeout_minutes,
                session_provider=session_provider,
                auth_provider=auth_provider,
                pod_name=f"node-{rank}",
                expires_at=now + timedelta(minutes=timeout_minutes),
                tunnel_name=f"bt-session-{job_id}-{rank}",
                auth_code=f"EMU{secrets.token_hex(1).upper()}-{secrets.token_hex(2).upper()}",
                auth_url=AUTH_URLS.get(auth_provider, AUTH_URLS["github"]),
                auth_code_generated_at=now,
                working_directory="/b10/workspace",
            )
            self._write(job_id, rank, session)

    def of(self, job_id: str) -> list[InteractiveSession]:
        rows = self._database.rows(
            "SELECT session FROM interactive_sessions WHERE job_id = ? ORDER BY node_rank", (job_id,)
        )
        return [InteractiveSession.model_validate_json(row["session"]) for row in rows]

    def change(self, job_id: str, session: InteractiveSession) -> None:
        """Store a session of the job in place of the one with the same id."""
        rank = [each.id for each in self.of(job_id)].index(session.id)
        self._write(job_id, rank, session)

    def forget(self, job_id: str) -> None:
        self._database.write("DELETE FROM interactive_sessions WHERE job_id = ?", (job_id,))

    def _write(self, job_id: str, rank: int, session: InteractiveSession) -> None:
        self._database.insert(
            "interactive_sessions",
            "REPLACE",
            id=session.id,
            job_id=job_id,
            node_rank=rank,
            session=session.model_dump_json(),
        )
