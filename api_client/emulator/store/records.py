"""Records of one kind by id: kept in memory, written through to the database as JSON."""

from __future__ import annotations

import json
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from api_client.emulator.store.database import Database

Record = TypeVar("Record")


class Records(Generic[Record]):
    """A table of immutable records; reads need no lock, because a change replaces a whole record."""

    def __init__(self, database: Database, table: str, kind: type[Record]) -> None:
        self._database = database
        self._table = table
        self._adapter = TypeAdapter(kind)
        database.create(
            f"CREATE TABLE IF NOT EXISTS {table}"
            " (sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);"
        )
        rows = database.rows(f"SELECT id, record FROM {table} ORDER BY sequence")
        self._records = {row["id"]: self._adapter.validate_python(json.loads(row["record"])) for row in rows}

    def __contains__(self, record_id: str) -> bool:
        return record_id in self._records

    def all(self) -> list[Record]:
        """Return all records, the one that was added first at the front."""
        return list(self._records.values())

    def get(self, record_id: str) -> Record | None:
        return self._records.get(record_id)

    def put(self, record_id: str, record: Record) -> Record:
        """Add or replace a record; a replaced one keeps its place."""
        # Python's json escapes text that is not valid Unicode; pydantic's does not encode it.
        text = json.dumps(self._adapter.dump_python(record, mode="json"))
        self._database.write(
            f"INSERT INTO {self._table} (id, record) VALUES (?, ?)"
            " ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            (record_id, text),
        )
        self._records[record_id] = record
        return record

    def delete(self, record_id: str) -> Record | None:
        """Delete and return a record; return None if there was none."""
        self._database.write(f"DELETE FROM {self._table} WHERE id = ?", (record_id,))
        return self._records.pop(record_id, None)
