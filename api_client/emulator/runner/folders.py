"""Why a job never starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath


class CannotStart(Exception):
    """The job can never start; the message says why, in a user's words.

    It becomes the job's ``error_message`` under the status DEPLOY_FAILED.
    """


NODE_PREFIX = "node-"
WEIGHTS_FOLDER = "weights"


@dataclass(frozen=True, slots=True)
class NodeFolders:
    """The directories of one node."""

    root: Path

    @property
    def checkpoints(self) -> Path:
        """BT_CHECKPOINT_DIR."""
        return self.root / "checkpoints"

    @property
    def mounts(self) -> Path:
        """The container's root as far as something is mounted in it: absolute paths hang below this."""
        return self.root / "mounts"

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

    @property
    def script(self) -> Path:
        """The start commands as one shell script."""
        return self.root / "start.sh"

    @property
    def loaded_checkpoints(self) -> Path:
        """Where checkpoints of earlier jobs are put before the start."""
        return self.root / "loaded_checkpoints"

    def weights(self, index: int) -> Path:
        """Where the weights of that place in the list are delivered."""
        return self.root / WEIGHTS_FOLDER / str(index)

    def node(self, rank: int) -> NodeFolders:
        """The directories of one node."""
        return NodeFolders(self.root / f"{NODE_PREFIX}{rank}")


@dataclass(frozen=True, slots=True)
class CacheFolders:
    """The read-write cache of a project; the team's part lies apart, as the team's projects share it."""

    base: Path
    shared: Path

    @property
    def project(self) -> Path:
        """BT_PROJECT_CACHE_DIR."""
        return self.base / "user_artifacts"

    @property
    def team(self) -> Path:
        """BT_TEAM_CACHE_DIR: a link to the team's own cache."""
        return self.base / "team_artifacts"

    @property
    def legacy_hugging_face(self) -> Path:
        """What a container has at /root/.cache/huggingface."""
        return self.base / "huggingface"

    def make(self) -> None:
        """Create what is missing."""
        for folder in (self.project, self.legacy_hugging_face, self.shared):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.team.is_symlink():
            self.team.symlink_to(self.shared, target_is_directory=True)


def contained(path: str) -> PurePosixPath:
    """A container's path without root and without ``..``, fit to be put below another one."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..", ".") and "\0" not in part]
    return PurePosixPath(*parts) if parts else PurePosixPath("root")
