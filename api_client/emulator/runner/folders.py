"""The folders of jobs, nodes and caches on this machine, and the error for jobs that can never start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from api_client.definitions.job_request import JobRequest
from api_client.emulator.data_folder import remove_tree

PROJECT_CACHE, TEAM_CACHE = "user_artifacts", "team_artifacts"
"""Folders of the cache, here and in a container."""


class CannotStart(Exception):
    """The job can never start; the message explains why, in terms the user knows.

    It becomes the job's ``error_message`` with the status DEPLOY_FAILED.
    """


class NodeFolders:
    """The directories of a node. ``mounts`` has what a container has at absolute paths."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self.scratch = root / "scratch"
        self.checkpoints = root / "checkpoints"
        self.mounts = root / "mounts"


class JobFolders:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.script = root / "start.sh"
        self.loaded_checkpoints = root / "loaded_checkpoints"
        self.weights = root / "weights"

    def node(self, rank: int) -> NodeFolders:
        return NodeFolders(self.root / f"node-{rank}")

    def make(self, request: JobRequest) -> None:
        for node in map(self.node, range(request.node_count)):
            optional = [node.checkpoints] if request.checkpointing else []
            for folder in (node.workspace, node.scratch, node.mounts, *optional):
                folder.mkdir(parents=True, exist_ok=True)

    def wipe(self) -> None:
        """Delete what a job does not keep: scratch space and delivered weights."""
        for folder in (self.weights, *self.root.glob("node-*/scratch")):
            remove_tree(folder)


class CacheFolders:
    """The read-write cache of a project; its part of the team is ``shared`` by the team's projects."""

    def __init__(self, base: Path, shared: Path) -> None:
        self.base = base
        self.project = base / PROJECT_CACHE
        self.team = base / TEAM_CACHE
        self.legacy_hugging_face = base / "huggingface"
        self._shared = shared

    def make(self) -> None:
        for folder in (self.project, self.legacy_hugging_face, self._shared):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.team.is_symlink():
            self.team.symlink_to(self._shared, target_is_directory=True)


@dataclass(frozen=True)
class DataFolders:
    """The runner's part of the data folder; ``team_of`` returns the team of a project."""

    data_dir: Path
    team_of: Callable[[str], str]

    def job(self, job_id: str) -> JobFolders:
        return JobFolders(self.data_dir / "jobs" / job_id)

    def caches(self, project_id: str) -> CacheFolders:
        shared = self.data_dir / "team_caches" / self.team_of(project_id)
        return CacheFolders(self.data_dir / "caches" / project_id, shared)

    @property
    def weights(self) -> Path:
        """Folder that keeps fetched weights for later jobs."""
        return self.data_dir / "weights"
