"""Stored state of the demo world: its scripted jobs and user actions on them.

Everything else follows from the script and the time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace

from api_client.emulator.store.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS fleet_jobs (
    job_id TEXT PRIMARY KEY,
    plan TEXT NOT NULL,
    seed INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    again INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    availability TEXT NOT NULL,
    stopped_ns INTEGER,
    deleted INTEGER NOT NULL
);
"""
_COLUMNS = "job_id, plan, seed, created_ns, again, priority, availability, stopped_ns, deleted"


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
        """Open the roster and add the ``initial`` jobs that it does not have yet."""
        self._database = database
        database.create(_SCHEMA)
        database.write_many(
            f"INSERT OR IGNORE INTO fleet_jobs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [_values(entry) for entry in initial],
        )
        rows = database.rows(f"SELECT {_COLUMNS} FROM fleet_jobs")
        self._entries = {row["job_id"]: _entry(row) for row in rows}

    def find(self, job_id: str) -> SimJobRecord | None:
        """Return the job, or None if it is unknown or deleted."""
        entry = self._entries.get(job_id)
        return None if entry is None or entry.deleted else entry

    def all(self) -> list[SimJobRecord]:
        """Return every job that is not deleted."""
        return [entry for entry in list(self._entries.values()) if not entry.deleted]

    def add(self, entry: SimJobRecord) -> None:
        self._write(entry)

    def stop(self, entry: SimJobRecord, stopped_ns: int) -> SimJobRecord:
        return self._write(replace(entry, stopped_ns=stopped_ns))

    def delete(self, entry: SimJobRecord) -> None:
        """Mark a job as deleted. The row stays, so that the script does not bring the job back."""
        self._write(replace(entry, deleted=True))

    def change(self, entry: SimJobRecord, *, priority: int, availability: str) -> SimJobRecord:
        return self._write(replace(entry, priority=priority, availability=availability))

    def _write(self, entry: SimJobRecord) -> SimJobRecord:
        self._database.write(
            f"INSERT OR REPLACE INTO fleet_jobs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            _values(entry),
        )
        self._entries = {**self._entries, entry.job_id: entry}
        return entry


def _values(entry: SimJobRecord) -> tuple[object, ...]:
    return (
        entry.job_id,
        entry.plan,
        entry.seed,
        entry.created_ns,
        int(entry.again),
        entry.priority,
        entry.availability,
        entry.stopped_ns,
        int(entry.deleted),
    )


def _entry(row: sqlite3.Row) -> SimJobRecord:
    return SimJobRecord(
        job_id=row["job_id"],
        plan=row["plan"],
        seed=row["seed"],
        created_ns=row["created_ns"],
        again=bool(row["again"]),
        priority=row["priority"],
        availability=row["availability"],
        stopped_ns=row["stopped_ns"],
        deleted=bool(row["deleted"]),
    )
