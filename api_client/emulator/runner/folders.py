"""The folders of jobs, nodes and caches on this machine, and the error for jobs that can never start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from api_client.definitions.job_request import JobRequest
from api_client.emulator.data_folder import remove_tree

PROJECT_CACHE, TEAM_CACHE, HUGGING_FACE_CACHE = "user_artifacts", "team_artifacts", "huggingface"
"""Folders of the cache; the first two are also those in a container."""


class CannotStart(Exception):
    """The job can never start; the message explains why, in terms the user knows.

    It becomes the job's ``error_message`` with the status DEPLOY_FAILED.
    """


WORKSPACE, SCRATCH, CHECKPOINTS, MOUNTS = "workspace", "scratch", "checkpoints", "mounts"
"""Folders of a node; the last one has what a container has at absolute paths."""


class JobFolders:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.script = root / "start.sh"
        self.loaded_checkpoints = root / "loaded_checkpoints"
        self.weights = root / "weights"

    def node(self, rank: int, name: str = "") -> Path:
        return self.root / f"node-{rank}" / name

    def make(self, request: JobRequest) -> None:
        names = [WORKSPACE, SCRATCH, MOUNTS, *([CHECKPOINTS] if request.checkpointing else [])]
        for rank, name in product(range(request.node_count), names):
            self.node(rank, name).mkdir(parents=True, exist_ok=True)

    def wipe(self) -> None:
        """Delete what a job does not keep: scratch space and delivered weights."""
        for folder in (self.weights, *self.root.glob(f"node-*/{SCRATCH}")):
            remove_tree(folder)


@dataclass(frozen=True)
class DataFolders:
    """The runner's part of the data folder; ``team_of`` returns the team of a project."""

    data_dir: Path
    team_of: Callable[[str], str]

    def job(self, job_id: str) -> JobFolders:
        return JobFolders(self.data_dir / "jobs" / job_id)

    def cache(self, project_id: str) -> Path:
        """Return the folder of a project's caches: its own, the team's, and Hugging Face's."""
        return self.data_dir / "caches" / project_id

    def make_cache(self, project_id: str) -> None:
        base, shared = self.cache(project_id), self.data_dir / "team_caches" / self.team_of(project_id)
        for folder in (base / PROJECT_CACHE, base / HUGGING_FACE_CACHE, shared):
            folder.mkdir(parents=True, exist_ok=True)
        if not (base / TEAM_CACHE).is_symlink():
            (base / TEAM_CACHE).symlink_to(shared, target_is_directory=True)

    @property
    def weights(self) -> Path:
        """Folder that keeps fetched weights for later jobs."""
        return self.data_dir / "weights"
