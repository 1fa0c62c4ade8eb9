"""Changes of status of local jobs."""

from __future__ import annotations

from datetime import datetime

from api_client.emulator.store.database import Database
from api_client.models import QueueEvent

_SCHEMA = """
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
        database.create(_SCHEMA)

    def append(
        self, job_id: str, status: str, at: datetime, *, message: str | None, exit_code: int | None
    ) -> None:
        """Record a change."""
        self._database.write(
            "INSERT INTO local_events (job_id, status, created, message, exit_code) VALUES (?, ?, ?, ?, ?)",
            (job_id, status, at.isoformat(), message, exit_code),
        )

    def read(self, job_id: str, job_name: str | None) -> list[QueueEvent]:
        """A job's changes, oldest first."""
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
        """Forget a job's changes."""
        self._database.write("DELETE FROM local_events WHERE job_id = ?", (job_id,))
