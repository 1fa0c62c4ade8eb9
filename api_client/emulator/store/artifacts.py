"""Which uploaded archives belong to which job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api_client.emulator.store.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS job_artifacts (
    job_id TEXT NOT NULL, position INTEGER NOT NULL, bucket TEXT NOT NULL, key TEXT NOT NULL,
    PRIMARY KEY (job_id, position)
);
"""


@dataclass(frozen=True, slots=True)
class ObjectName:
    """Where an uploaded object lies."""

    bucket: str
    key: str


class ArtifactStore:
    """Archives by job."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(SCHEMA)

    def set(self, job_id: str, names: Sequence[ObjectName]) -> None:
        """Note a new job's archives."""
        self._database.write_many(
            "INSERT INTO job_artifacts (job_id, position, bucket, key) VALUES (?, ?, ?, ?)",
            [(job_id, position, name.bucket, name.key) for position, name in enumerate(names)],
        )

    def of(self, job_id: str) -> list[ObjectName]:
        """A job's archives, in the order they were named."""
        rows = self._database.rows(
            "SELECT bucket, key FROM job_artifacts WHERE job_id = ? ORDER BY position", (job_id,)
        )
        return [ObjectName(row["bucket"], row["key"]) for row in rows]

    def forget(self, job_id: str) -> None:
        """A deleted job has none; the objects stay, as other jobs may use them."""
        self._database.write("DELETE FROM job_artifacts WHERE job_id = ?", (job_id,))
