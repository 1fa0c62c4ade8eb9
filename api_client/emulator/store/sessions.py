"""Interactive sessions, one for each node of a job that asked for them."""

from __future__ import annotations

import secrets
import sqlite3
from datetime import datetime, timedelta

from api_client.emulator.ids import new_id
from api_client.emulator.store.database import Database
from api_client.emulator.timestamps import iso, moment
from api_client.models import InteractiveSession

SCHEMA = """
CREATE TABLE IF NOT EXISTS interactive_sessions (
    id TEXT PRIMARY KEY, job_id TEXT NOT NULL, node_rank INTEGER NOT NULL, trigger TEXT NOT NULL,
    timeout_minutes INTEGER NOT NULL, session_provider TEXT NOT NULL, auth_provider TEXT NOT NULL,
    auth_code TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL
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
        database.create(SCHEMA)

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
        """Make a session for each node of a new job."""
        expires_at = iso(now + timedelta(minutes=timeout_minutes))
        shared = (trigger, timeout_minutes, session_provider, auth_provider)
        self._database.write_many(
            "INSERT INTO interactive_sessions (id, job_id, node_rank, trigger, timeout_minutes,"
            " session_provider, auth_provider, auth_code, created_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (new_id(), job_id, rank, *shared, _device_code(), iso(now), expires_at)
                for rank in range(node_count)
            ],
        )

    def copy(self, job_id: str, new_job_id: str, now: datetime) -> None:
        """Give a recreated job sessions like those of the first one."""
        rows = self._database.rows("SELECT * FROM interactive_sessions WHERE job_id = ?", (job_id,))
        if rows:
            self.open(
                new_job_id,
                node_count=len(rows),
                trigger=rows[0]["trigger"],
                timeout_minutes=rows[0]["timeout_minutes"],
                session_provider=rows[0]["session_provider"],
                auth_provider=rows[0]["auth_provider"],
                now=now,
            )

    def of(self, job_id: str) -> list[InteractiveSession]:
        """The job's sessions, by node."""
        rows = self._database.rows(
            "SELECT * FROM interactive_sessions WHERE job_id = ? ORDER BY node_rank", (job_id,)
        )
        return [_session(row) for row in rows]

    def change(
        self, session_id: str, *, trigger: str, timeout_minutes: int, expires_at: datetime
    ) -> InteractiveSession:
        """Set what may change of a session."""
        self._database.write(
            "UPDATE interactive_sessions SET trigger = ?, timeout_minutes = ?, expires_at = ? WHERE id = ?",
            (trigger, timeout_minutes, iso(expires_at), session_id),
        )
        row = self._database.row("SELECT * FROM interactive_sessions WHERE id = ?", (session_id,))
        assert row is not None
        return _session(row)

    def forget(self, job_id: str) -> None:
        """A deleted job has no sessions."""
        self._database.write("DELETE FROM interactive_sessions WHERE job_id = ?", (job_id,))


def _device_code() -> str:
    return f"EMU{secrets.token_hex(1).upper()}-{secrets.token_hex(2).upper()}"


def _session(row: sqlite3.Row) -> InteractiveSession:
    created_at = moment(row["created_at"])
    return InteractiveSession(
        id=row["id"],
        trigger=row["trigger"],
        timeout_minutes=row["timeout_minutes"],
        session_provider=row["session_provider"],
        auth_provider=row["auth_provider"],
        pod_name=f"node-{row['node_rank']}",
        expires_at=moment(row["expires_at"]),
        tunnel_name=f"bt-session-{row['job_id']}-{row['node_rank']}",
        auth_code=row["auth_code"],
        auth_url=AUTH_URLS.get(row["auth_provider"], AUTH_URLS["github"]),
        auth_code_generated_at=created_at,
        working_directory="/b10/workspace",
    )
