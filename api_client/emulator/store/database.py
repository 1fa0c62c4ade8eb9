"""The emulator's SQLite database: its connection, usable from any thread, and all of its tables.

The tables have records by id, and the log lines and metric samples of local jobs by time.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from api_client.emulator.backend import LogQuery
from api_client.emulator.data_folder import EmulatorStartError
from api_client.models import LogRecord, MetricSample, NodeSeries, StorageMetrics
from api_client.models.logs import MS_PER_S
from api_client.models.metrics import SeriesPath, node_of, storage_of

SCHEMA_VERSION = 7
"""Version of the tables; raise it when they change."""


class Database:
    """A SQLite file whose connection has a lock, because routes and jobs run in threads.

    Opening raises ``EmulatorStartError`` if another version of the emulator wrote the file, and sqlite3.Error
    if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level="IMMEDIATE")
        self._connection.row_factory = sqlite3.Row
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            if not self.rows("SELECT 1 FROM sqlite_master"):
                self._connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            elif self.rows("PRAGMA user_version")[0][0] != SCHEMA_VERSION:
                raise EmulatorStartError(
                    f"{path} was written by another version of the emulator; choose another data folder, or"
                    f" move {path.parent} away"
                )
        except BaseException:
            self.close()
            raise

    def create(self, schema: str) -> None:
        """Create tables and indexes; every statement must use IF NOT EXISTS."""
        with self._lock:
            self._connection.executescript(schema)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(sql, parameters).fetchall()

    def write(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self.write_many(sql, [parameters])

    def write_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each row in a transaction: on an error, no row is changed."""
        with self._lock, self._connection:
            self._connection.executemany(sql, rows)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


Record = TypeVar("Record")


class Records(Generic[Record]):
    """A table of immutable records, kept in memory and written through to the database as JSON.

    Reads need no lock, because a change replaces a whole record. Raises sqlite3.DataError if a stored record
    is not valid for the type.
    """

    def __init__(self, database: Database, table: str, record_type: type[Record]) -> None:
        self._database = database
        self._table = table
        self._adapter = TypeAdapter(record_type)
        database.create(
            f"CREATE TABLE IF NOT EXISTS {table}"
            " (sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);"
        )
        rows = database.rows(f"SELECT id, record FROM {table} ORDER BY sequence")
        try:
            self._records = {
                row["id"]: self._adapter.validate_python(json.loads(row["record"])) for row in rows
            }
        except ValueError as error:
            raise sqlite3.DataError(f"a record of {table} can't be read") from error

    def __contains__(self, record_id: str) -> bool:
        return record_id in self._records

    def __getitem__(self, record_id: str) -> Record:
        return self._records[record_id]

    def all(self) -> list[Record]:
        """Return all records, in the order in which they were added."""
        return list(self._records.values())

    def get(self, record_id: str) -> Record | None:
        return self._records.get(record_id)

    def put(self, record_id: str, record: Record) -> Record:
        """Add or replace a record; replacing keeps the order."""
        self.put_all({record_id: record})
        return record

    def put_all(self, records: Mapping[str, Record]) -> None:
        # Not pydantic's JSON: it can't encode text that is not valid Unicode, which Python's json escapes.
        self._database.write_many(
            f"INSERT INTO {self._table} (id, record) VALUES (?, ?)"
            " ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            [
                (record_id, json.dumps(self._adapter.dump_python(records[record_id], mode="json")))
                for record_id in records
            ],
        )
        self._records.update(records)

    def delete(self, record_id: str) -> Record | None:
        """Delete and return a record; return None if the id has no record."""
        self._database.write(f"DELETE FROM {self._table} WHERE id = ?", (record_id,))
        return self._records.pop(record_id, None)


LogRow = tuple[str, int, int, str | None, str]
"""A log line: job id, nanoseconds since the epoch, node rank, level, text."""
SampleRow = tuple[str, int, int, str, float]
"""A sample: job id, milliseconds since the epoch, node rank, metric, value.

Metrics are named like the series of the API: ``cpu_usage``, ``gpu_utilization.0``. Utilization is from 0 to
1.
"""


class JobLogStore:
    """The table of log lines; a job's lines are ordered by timestamp."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create("""
CREATE TABLE IF NOT EXISTS local_logs (
    sequence INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL,
    timestamp_ns INTEGER NOT NULL,
    node_rank INTEGER NOT NULL,
    level TEXT,
    message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS local_logs_by_time ON local_logs (job_id, timestamp_ns, sequence);
""")

    def append(self, lines: Iterable[LogRow]) -> None:
        self._database.write_many(
            "INSERT INTO local_logs (job_id, timestamp_ns, node_rank, level, message) VALUES (?, ?, ?, ?, ?)",
            lines,
        )

    def read(self, job_id: str, query: LogQuery) -> list[LogRecord]:
        order = "ASC" if query.direction == "asc" else "DESC"
        levels: Sequence[str] = sorted(query.levels or ())
        level_filter = f" AND level IN ({', '.join('?' * len(levels))})" if query.levels is not None else ""
        rows = self._database.rows(
            "SELECT timestamp_ns, node_rank, level, message FROM local_logs"
            f" WHERE job_id = ? AND timestamp_ns >= ? AND timestamp_ns < ?{level_filter}"
            f" ORDER BY timestamp_ns {order}, sequence {order} LIMIT ?",
            (job_id, _bounded(query.start_ns), _bounded(query.end_ns), *levels, query.limit),
        )
        return [
            LogRecord(
                timestamp=str(row["timestamp_ns"]),
                message=row["message"],
                replica=f"node-{row['node_rank']}",
                request_id=None,
                level=row["level"],
            )
            for row in rows
        ]

    def delete(self, job_id: str) -> None:
        self._database.write("DELETE FROM local_logs WHERE job_id = ?", (job_id,))


def _bounded(number: int) -> int:
    """Clamp a client's value to the range of SQLite's integers."""
    limit = 2**63 - 1
    return max(-limit, min(limit, number))


class MetricStore:
    """The table of metric samples."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create("""
CREATE TABLE IF NOT EXISTS local_samples (
    job_id TEXT NOT NULL, at_ms INTEGER NOT NULL, node_rank INTEGER NOT NULL, metric TEXT NOT NULL,
    value REAL NOT NULL, PRIMARY KEY (job_id, at_ms, node_rank, metric)
) WITHOUT ROWID;
""")

    def append(self, samples: Iterable[SampleRow]) -> None:
        """Add samples; a sample replaces an earlier one of the same node, metric and time."""
        self._database.write_many("INSERT OR REPLACE INTO local_samples VALUES (?, ?, ?, ?, ?)", samples)

    def read(
        self, job_id: str, *, start_s: float, end_s: float, step_s: int
    ) -> tuple[dict[int, NodeSeries], StorageMetrics | None]:
        """Return the nodes' series by rank, and the cache's series if it was ever measured.

        Each value is the mean over an interval of ``step_s`` seconds, for intervals that begin from
        ``start_s`` on and before ``end_s``. Intervals are aligned to the epoch, so that an interval has the
        same timestamp (its beginning) in every time range.
        """
        step_ms = max(1, step_s) * MS_PER_S
        start_ms = math.ceil(start_s * MS_PER_S / step_ms) * step_ms
        rows = self._database.rows(
            f"SELECT node_rank, metric, at_ms / {step_ms} * {step_ms} AS step, avg(value) AS value"
            " FROM local_samples WHERE job_id = ? AND at_ms >= ? AND at_ms < ?"
            " GROUP BY node_rank, metric, step ORDER BY node_rank, metric, step",
            (job_id, _bounded(start_ms), _bounded(math.ceil(end_s * MS_PER_S))),
        )
        nodes: dict[int, dict[SeriesPath, list[MetricSample]]] = {}
        for row in rows:
            path = tuple(row["metric"].split(".", 1))
            sample = MetricSample(datetime.fromtimestamp(row["step"] / MS_PER_S, UTC), row["value"])
            nodes.setdefault(row["node_rank"], {}).setdefault(path, []).append(sample)
        cache = next((samples for samples in nodes.values() if ("cache", "usage_bytes") in samples), None)
        return (
            {rank: node_of(samples) for rank, samples in nodes.items()},
            None if cache is None else storage_of(cache, "cache"),
        )

    def span_s(self, job_id: str) -> tuple[float, float] | None:
        """Return the epoch seconds of the first and the last sample, None without samples."""
        sql = "SELECT min(at_ms), max(at_ms) FROM local_samples WHERE job_id = ?"
        ((first_ms, last_ms),) = self._database.rows(sql, (job_id,))
        return None if first_ms is None else (first_ms / MS_PER_S, last_ms / MS_PER_S)

    def delete(self, job_id: str) -> None:
        self._database.write("DELETE FROM local_samples WHERE job_id = ?", (job_id,))
