"""The folders of jobs, nodes and caches on this machine, and the error for jobs that can never start."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


class CannotStart(Exception):
    """The job can never start; the message explains why, in terms the user knows.

    It becomes the job's ``error_message`` with the status DEPLOY_FAILED.
    """


NODE_PREFIX = "node-"
WEIGHTS_FOLDER = "weights"


@dataclass(frozen=True, slots=True)
class NodeFolders:
    """The directories of a node."""

    root: Path

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def mounts(self) -> Path:
        """Root for the container's absolute paths; contains only what is mounted."""
        return self.root / "mounts"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"


@dataclass(frozen=True, slots=True)
class JobFolders:
    """The directories of a job."""

    root: Path

    @property
    def script(self) -> Path:
        return self.root / "start.sh"

    @property
    def loaded_checkpoints(self) -> Path:
        return self.root / "loaded_checkpoints"

    def weights(self, index: int) -> Path:
        return self.root / WEIGHTS_FOLDER / str(index)

    def node(self, rank: int) -> NodeFolders:
        """The directories of a node."""
        return NodeFolders(self.root / f"{NODE_PREFIX}{rank}")


@dataclass(frozen=True, slots=True)
class CacheFolders:
    """The read-write cache of a project.

    The team's part is stored separately because its projects share it.
    """

    base: Path
    shared: Path

    @property
    def project(self) -> Path:
        return self.base / "user_artifacts"

    @property
    def team(self) -> Path:
        return self.base / "team_artifacts"

    @property
    def legacy_hugging_face(self) -> Path:
        """Counterpart of /root/.cache/huggingface in a container."""
        return self.base / "huggingface"

    def make(self) -> None:
        for folder in (self.project, self.legacy_hugging_face, self.shared):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.team.is_symlink():
            self.team.symlink_to(self.shared, target_is_directory=True)


def contained(path: str) -> PurePosixPath:
    """Make a container path relative and drop ``..``, so that it is safe to join to another path."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..", ".") and "\0" not in part]
    return PurePosixPath(*parts) if parts else PurePosixPath("root")


UNKNOWN_TEAM = "unknown"
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_safe_id(name: str) -> bool:
    """Return True if an id is safe to use as a directory name."""
    return _SAFE_ID.fullmatch(name) is not None


class DataFolders:
    """The runner's part of the data folder."""

    def __init__(self, data_dir: Path, team_of: Callable[[str], str]) -> None:
        self._data_dir = data_dir.absolute()
        self._team_of = team_of

    def job(self, job_id: str) -> JobFolders:
        return JobFolders(self._data_dir / "jobs" / job_id)

    def caches(self, project_id: str) -> CacheFolders | None:
        """Return the cache of a project, or None if its id is not safe as a directory name."""
        if not is_safe_id(project_id):
            return None
        team_id = self._team_of(project_id)
        shared = team_id if is_safe_id(team_id) else UNKNOWN_TEAM
        return CacheFolders(self._data_dir / "caches" / project_id, self._data_dir / "team_caches" / shared)

    @property
    def weights(self) -> Path:
        """Folder that keeps fetched weights for later jobs."""
        return self._data_dir / "weights"
