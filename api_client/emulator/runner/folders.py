"""Where a job's files lie, and how container paths map to this machine.

A job of the runner sees directories of its own in place of the paths it would find in a container::

    <data>/jobs/<job id>/
        start.sh                    the start commands as one script
        loaded_checkpoints/rank-0/  what BT_LOAD_CHECKPOINT_DIR holds
        node-0/workspace/           working directory, the archive's root
        node-0/scratch/             BT_SCRATCH_DIR, emptied at the end
        node-0/checkpoints/         BT_CHECKPOINT_DIR (or node-0/mounts/<checkpoint_path>)
    <data>/caches/<project id>/     BT_RW_CACHE_DIR with user_artifacts/ and team_artifacts/
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class NodeFolders:
    """The directories of one node."""

    root: Path
    checkpoints: Path

    @property
    def workspace(self) -> Path:
        """The working directory of the start commands."""
        return self.root / "workspace"

    @property
    def scratch(self) -> Path:
        """Fast storage that is emptied when the job ends."""
        return self.root / "scratch"


@dataclass(frozen=True, slots=True)
class JobFolders:
    """The directories of one job."""

    root: Path
    checkpoint_path: str | None = None

    @property
    def script(self) -> Path:
        """The start commands as one shell script."""
        return self.root / "start.sh"

    @property
    def loaded_checkpoints(self) -> Path:
        """Where checkpoints of earlier jobs are put before the start."""
        return self.root / "loaded_checkpoints"

    def node(self, rank: int) -> NodeFolders:
        """The directories of one node. A custom checkpoint path stays below the node, ``..`` and all."""
        root = self.root / f"node-{rank}"
        if self.checkpoint_path is None:
            return NodeFolders(root, root / "checkpoints")
        return NodeFolders(root, root / "mounts" / contained(self.checkpoint_path))


@dataclass(frozen=True, slots=True)
class CacheFolders:
    """The read-write cache of a project; the team's part is shared by all projects here."""

    base: Path

    @property
    def project(self) -> Path:
        """BT_PROJECT_CACHE_DIR."""
        return self.base / "user_artifacts"

    @property
    def team(self) -> Path:
        """BT_TEAM_CACHE_DIR: a link to the one team cache of this emulator."""
        return self.base / "team_artifacts"

    @property
    def legacy_hugging_face(self) -> Path:
        """What a container has at /root/.cache/huggingface."""
        return self.base / "huggingface"

    def make(self) -> None:
        """Create what is missing."""
        self.project.mkdir(parents=True, exist_ok=True)
        shared = self.base.parent / "_team"
        shared.mkdir(exist_ok=True)
        if not self.team.is_symlink():
            self.team.symlink_to(shared, target_is_directory=True)


def contained(path: str) -> PurePosixPath:
    """A path without root and without ``..``, fit to be put below another one."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..", ".") and "\0" not in part]
    return PurePosixPath(*parts) if parts else PurePosixPath("root")
