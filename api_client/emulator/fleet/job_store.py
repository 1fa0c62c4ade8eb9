"""Stored state of the demo world: its scripted jobs and user actions on them.

Everything else follows from the script and the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from api_client.emulator.store.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS fleet_jobs (
    job_id TEXT PRIMARY KEY, plan TEXT NOT NULL, seed INTEGER NOT NULL, created_ns INTEGER NOT NULL,
    again INTEGER NOT NULL, priority INTEGER NOT NULL, availability TEXT NOT NULL, stopped_ns INTEGER,
    deleted INTEGER NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class SimJobRecord:
    """A scripted job. Moments are script nanoseconds; ``again`` is True for a recreated job."""

    job_id: str
    plan: str
    seed: int
    created_ns: int
    again: bool
    priority: int
    availability: str
    stopped_ns: int | None = None
    deleted: bool = False


class SimJobStore:
    """All scripted jobs of a world, kept in the database and in memory.

    Reads need no lock: entries are immutable, and a change replaces the whole mapping.
    """

    def __init__(self, database: Database, initial: Iterable[SimJobRecord]) -> None:
        """Open the table and add the ``initial`` jobs that it does not have yet."""
        self._database = database
        database.create(_SCHEMA)
        with database.transaction():
            for entry in initial:
                database.insert("fleet_jobs", "IGNORE", **asdict(entry))
        rows = database.rows("SELECT * FROM fleet_jobs")
        self._entries = {row["job_id"]: SimJobRecord(*row) for row in rows}

    def find(self, job_id: str) -> SimJobRecord | None:
        """Return the job, or None if it is unknown or deleted."""
        entry = self._entries.get(job_id)
        return None if entry is None or entry.deleted else entry

    def all(self) -> list[SimJobRecord]:
        """Return every job that is not deleted."""
        return [entry for entry in list(self._entries.values()) if not entry.deleted]

    def write(self, entry: SimJobRecord) -> SimJobRecord:
        """Add or replace a job. A deleted one stays, so that the script does not bring it back."""
        self._database.insert("fleet_jobs", "REPLACE", **asdict(entry))
        self._entries = {**self._entries, entry.job_id: entry}
        return entry
