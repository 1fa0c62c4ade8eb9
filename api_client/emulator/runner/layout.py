"""Where the runner's jobs lie, and what is found there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from api_client.emulator.runner.checkpoints import CheckpointIndex, FoundCheckpoint
from api_client.emulator.runner.folders import CacheFolders, JobFolders
from api_client.emulator.runner.spec import parse_spec
from api_client.emulator.store.jobs import JobRow

UNKNOWN_TEAM = "unknown"
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_safe_id(name: str) -> bool:
    """Whether an id can be a directory's name."""
    return _SAFE_ID.fullmatch(name) is not None


class Layout:
    """The data folder of the runner. Safe from any thread."""

    def __init__(
        self,
        data_dir: Path,
        *,
        max_nodes: int,
        monotonic: Callable[[], float],
        team_of: Callable[[str], str],
    ) -> None:
        self._data_dir = data_dir.absolute()
        self.team_of = team_of
        self._max_nodes = max_nodes
        self._index = CheckpointIndex(monotonic)

    def job(self, row: JobRow) -> JobFolders:
        """The directories of a job."""
        return JobFolders(self._data_dir / "jobs" / row.job.id)

    def caches(self, project_id: str) -> CacheFolders | None:
        """The cache of a project; None if no directory can have that name."""
        if not is_safe_id(project_id):
            return None
        team_id = self.team_of(project_id)
        shared = team_id if is_safe_id(team_id) else UNKNOWN_TEAM
        return CacheFolders(self._data_dir / "caches" / project_id, self._data_dir / "team_caches" / shared)

    @property
    def links(self) -> Path:
        """Where the links outside of the data folder are written down."""
        return self._data_dir / "links.json"

    @property
    def mirror(self) -> Path:
        """Where delivered weights are kept for the next job."""
        return self._data_dir / "weights"

    def checkpoints(self, row: JobRow) -> list[FoundCheckpoint]:
        """A job's checkpoints, oldest first, as they lie on the disk (or did a moment ago)."""
        spec = parse_spec(row.spec)
        if not spec.checkpointing or spec.node_count > self._max_nodes:
            return []
        return self._index.of(row.job.id, self.job(row), spec.node_count, finished=row.job.is_finished)

    def forget(self, job_id: str) -> None:
        """Look at a job's disk again next time."""
        self._index.forget(job_id)
