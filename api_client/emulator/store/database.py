"""The emulator's SQLite connection, usable from any thread."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from api_client.emulator.data_folder import EmulatorStartError

FORMAT = 5
"""Version of the tables; raise it when they change."""


class Database:
    """A SQLite file behind a lock, because routes run in threads and the runner on the event loop.

    Opening raises ``EmulatorStartError`` if another version of the emulator wrote it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._check_format(path)

    def _check_format(self, path: Path) -> None:
        """Mark a new file with the current format; refuse a file in another one."""
        is_new = self.row("SELECT 1 FROM sqlite_master") is None
        if is_new:
            self._connection.execute(f"PRAGMA user_version={FORMAT}")
        elif self._connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            self.close()
            raise EmulatorStartError(
                f"{path} was written by another version of the emulator; choose another data folder, or move"
                f" {path.parent} away"
            )

    def create(self, schema: str) -> None:
        """Create tables and indexes; every statement must use IF NOT EXISTS."""
        with self._lock:
            self._connection.executescript(schema)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Row | None:
        with self._lock:
            found = self._connection.execute(sql, parameters).fetchone()
            return found if isinstance(found, sqlite3.Row) else None

    def write(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a single statement and commit it."""
        with self._lock:
            self._connection.execute(sql, parameters)

    def write_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for many rows in one transaction."""
        with self.transaction():
            self._connection.executemany(sql, parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything inside the ``with`` block, or roll back on an error."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()
