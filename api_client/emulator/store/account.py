"""Teams, their secrets, and interactive sessions. Secret values go only to jobs that name them.

The database holds only the names of secrets. Each value is in a separate file that only its owner may read,
so that a copy or a dump of the database reveals nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from api_client.emulator.formats import new_id
from api_client.emulator.job_spec import CheckedJobSpec
from api_client.emulator.store.database import Database, Records
from api_client.files import make_private_folder, write_private
from api_client.models import InteractiveSession, Secret, Team


class SecretStore:
    """Secrets by team and name: names in the database, values in files below ``folder``."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._names = Records(database, "secret_names", Secret)
        self._folder = folder
        make_private_folder(folder)

    def names(self, team: Team) -> list[Secret]:
        """Return the team's secrets, sorted by name, without values."""
        own = (secret for secret in self._names.all() if secret.team_name == team.name)
        return sorted(own, key=lambda secret: secret.name)

    def upsert(self, team: Team, name: str, value: str, now: datetime) -> Secret:
        path = self._path(team.id, name)
        write_private(path, value.encode(errors="surrogatepass"))
        existing = self._names.get(path.name)
        return existing or self._names.put(
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
            return self._path(team_id, name).read_bytes().decode(errors="surrogatepass")
        except FileNotFoundError:
            return None

    def _path(self, team_id: str, name: str) -> Path:
        """Return the secret's file, named by a hash because secret names may contain anything."""
        subject = f"{team_id}\0{name}".encode(errors="surrogatepass")
        return self._folder / hashlib.sha256(subject).hexdigest()


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
        """Return the team's own limit; a team without one has the organization's."""
        return self._limits.get(f"{team_id} {gpu_type}")


AUTH_URLS = {
    "github": "https://github.com/login/device",
    "microsoft": "https://microsoft.com/devicelogin",
}

Sessions = tuple[InteractiveSession, ...]
"""The sessions of a job, one per node."""


class SessionStore:
    def __init__(self, database: Database) -> None:
        self._sessions: Records[Sessions] = Records(database, "interactive_sessions", Sessions)

    def open(self, job_id: str, spec: CheckedJobSpec, now: datetime) -> None:
        """Open a session on each node, if the job has them."""
        settings = spec.interactive_session
        if settings is None:
            return
        sessions = (
            InteractiveSession(
                id=new_id(),
                **settings.model_dump(include=set(type(settings).model_fields)),
                pod_name=f"node-{rank}",
                expires_at=now + timedelta(minutes=settings.timeout_minutes),
                tunnel_name=f"bt-session-{job_id}-{rank}",
                auth_code=f"EMU{secrets.token_hex(1).upper()}-{secrets.token_hex(2).upper()}",
                auth_url=AUTH_URLS[settings.auth_provider],
                auth_code_generated_at=now,
                working_directory="/b10/workspace",
            )
            for rank in range(spec.compute.node_count)
        )
        self._sessions.put(job_id, tuple(sessions))

    def of(self, job_id: str) -> Sessions:
        return self._sessions.get(job_id) or ()

    def change(self, job_id: str, session: InteractiveSession) -> None:
        """Store a session of the job in place of the one with the same id."""
        sessions = (session if stored.id == session.id else stored for stored in self.of(job_id))
        self._sessions.put(job_id, tuple(sessions))

    def forget(self, job_id: str) -> None:
        self._sessions.delete(job_id)
