"""The emulator's SQLite connection, usable from any thread, and tables of records by id."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from api_client.emulator.data_folder import EmulatorStartError

FORMAT = 7
"""Version of the tables; raise it when they change."""


class Database:
    """A SQLite file behind a lock, because routes run in threads and the runner on the event loop.

    Opening raises ``EmulatorStartError`` if another version of the emulator wrote it, and sqlite3.Error if
    it is damaged.
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
                self._connection.execute(f"PRAGMA user_version={FORMAT}")
            elif self.rows("PRAGMA user_version")[0][0] != FORMAT:
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
        """Execute a statement for each row: for all of them or, on an error, for none."""
        with self._lock, self._connection:
            self._connection.executemany(sql, rows)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


Record = TypeVar("Record")


class Records(Generic[Record]):
    """A table of immutable records, kept in memory and written through to the database as JSON.

    Reads need no lock, because a change replaces a whole record. Raises sqlite3.DataError if a record has
    another shape.
    """

    def __init__(self, database: Database, table: str, kind: type[Record]) -> None:
        self._database = database
        self._table = table
        self._adapter = TypeAdapter(kind)
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
        """Return all records, the one that was added first at the front."""
        return list(self._records.values())

    def get(self, record_id: str) -> Record | None:
        return self._records.get(record_id)

    def put(self, record_id: str, record: Record) -> Record:
        """Add or replace a record; a replaced one keeps its place."""
        self.put_all({record_id: record})
        return record

    def put_all(self, records: Mapping[str, Record]) -> None:
        # Python's json escapes text that is not valid Unicode; pydantic's does not encode it.
        self._database.write_many(
            f"INSERT INTO {self._table} (id, record) VALUES (?, ?)"
            " ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            [(name, json.dumps(self._adapter.dump_python(records[name], mode="json"))) for name in records],
        )
        self._records.update(records)

    def delete(self, record_id: str) -> Record | None:
        """Delete and return a record; return None if there was none."""
        self._database.write(f"DELETE FROM {self._table} WHERE id = ?", (record_id,))
        return self._records.pop(record_id, None)
