"""Folders and environment of a job on this machine: the documented BT_ variables, and container paths.

The user's variables override inherited variables; the platform's override both. A job's absolute paths are
not created on this machine: instead, every node has a ``mounts`` folder with links for them, so that
``$BT_EMULATOR_ROOT/app/models/llama`` is the folder that a container has at ``/app/models/llama``.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any

import psutil

from api_client.definitions.job_request import JobRequest
from api_client.definitions.jobs import WORKING_FOLDER
from api_client.emulator.data_folder import remove_tree
from api_client.models import TrainingJob

PROJECT_CACHE, TEAM_CACHE, HUGGING_FACE_CACHE = "user_artifacts", "team_artifacts", "huggingface"
"""Folder names in the cache; the first two are also the names in a container."""


class CannotStart(Exception):
    """The job can never start; the message tells the user why.

    The job gets the status DEPLOY_FAILED and the message as its ``error_message``.
    """


WORKSPACE, SCRATCH, CHECKPOINTS, MOUNTS = "workspace", "scratch", "checkpoints", "mounts"
"""Folders of a node; ``MOUNTS`` has links for the absolute paths of a container."""


class JobFolders:
    """The folders of a job in the data folder."""

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
        """Delete the folders that only a running job needs: scratch space and weights."""
        for folder in (self.weights, *self.root.glob(f"node-*/{SCRATCH}")):
            remove_tree(folder)


@dataclass(frozen=True)
class DataFolders:
    """The folders that the runner uses in the data folder; ``team_of`` returns the team of a project."""

    data_dir: Path
    team_of: Callable[[str], str]

    def job(self, job_id: str) -> JobFolders:
        return JobFolders(self.data_dir / "jobs" / job_id)

    def cache(self, project_id: str) -> Path:
        """Return the folder that contains the project's cache, the team's, and Hugging Face's."""
        return self.data_dir / "caches" / project_id

    def make_cache(self, project_id: str) -> None:
        project_folder, team_folder = (
            self.cache(project_id),
            self.data_dir / "team_caches" / self.team_of(project_id),
        )
        for folder in (project_folder / PROJECT_CACHE, project_folder / HUGGING_FACE_CACHE, team_folder):
            folder.mkdir(parents=True, exist_ok=True)
        if not (project_folder / TEAM_CACHE).is_symlink():
            (project_folder / TEAM_CACHE).symlink_to(team_folder, target_is_directory=True)

    @property
    def weights(self) -> Path:
        """Folder that stores fetched weights for later jobs."""
        return self.data_dir / "weights"


def walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield all files and folders below a folder, with their status; skip files deleted meanwhile."""
    for parent, folders, names in os.walk(root):
        folders.sort()
        for name in sorted((*folders, *names)):
            path = Path(parent, name)
            with contextlib.suppress(OSError):
                yield path, path.lstat()


INHERITED_VARIABLES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR",
        "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    }
)  # fmt: skip
"""Variables that a job inherits from the emulator: no API keys, and no proxies, whose URLs have passwords."""

JOB_FOLDER_VARIABLE = "BT_EMULATOR_JOB_DIR"
"""Variable that identifies the processes of a job, even if they leave their process group."""

MOUNTS_VARIABLE = "BT_EMULATOR_ROOT"
"""Variable with the folder that replaces a container's root on a node.

The platform does not set it, so that ``$BT_EMULATOR_ROOT/app/model`` is correct in both places.
"""


SecretByName = Callable[[str, str], str]
"""Returns a secret's value by its name and the setting that needs it, or raises ``CannotStart``."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of a container: its ``path`` there, and its ``target``, the folder on this machine.

    ``content`` names the folder's content in log lines. ``variable`` is the environment variable with
    the folder's location, if any.
    """

    path: str | None
    target: Path
    content: str
    variable: str | None = None


def mounts_of(spec: JobRequest, folders: JobFolders, cache: Path, rank: int) -> Iterator[Mount]:
    """Yield all folders that a node's container would have, except weights."""
    if spec.uses_workdir:
        yield Mount(WORKING_FOLDER, folders.node(rank, WORKSPACE), "working directory", "BT_WORKING_DIR")
    if spec.load_from is not None:
        loaded_folder = folders.loaded_checkpoints
        yield Mount(spec.load_folder, loaded_folder, "loaded checkpoints", "BT_LOAD_CHECKPOINT_DIR")
    if spec.checkpointing:
        checkpoint_folder = folders.node(rank, CHECKPOINTS)
        yield Mount(spec.checkpoint_path, checkpoint_folder, "checkpoints", "BT_CHECKPOINT_DIR")
    if spec.caching:
        cache_root = PurePosixPath(spec.cache_mount)
        yield Mount(None, cache, "caches", "BT_RW_CACHE_DIR")
        yield Mount(
            str(cache_root / PROJECT_CACHE), cache / PROJECT_CACHE, "project cache", "BT_PROJECT_CACHE_DIR"
        )
        yield Mount(str(cache_root / TEAM_CACHE), cache / TEAM_CACHE, "team cache", "BT_TEAM_CACHE_DIR")
    if spec.caching and spec.legacy_hf_mount:
        hub_cache = cache / HUGGING_FACE_CACHE
        yield Mount("/root/.cache/huggingface", hub_cache, "Hugging Face cache", "HF_HOME")


def node_environment(
    spec: JobRequest,
    job: TrainingJob,
    folders: JobFolders,
    rank: int,
    mounts: Iterable[Mount],
    *,
    inherited: Mapping[str, str],
    secret_by_name: SecretByName,
    visible_gpus: str | None,
) -> dict[str, str]:
    """Build the environment of a node. ``visible_gpus`` lists the GPUs of the machine that the node may use.

    Raises ``CannotStart`` for a missing secret or an invalid name.
    """
    platform_variables = {mount.variable: str(mount.target) for mount in mounts if mount.variable}
    # Without this Python buffers output that does not go to a terminal, and log lines arrive late.
    defaults = {"PYTHONUNBUFFERED": "1", "PWD": str(folders.node(rank, WORKSPACE))}
    if "HF_HOME" in platform_variables:
        defaults["HF_HOME"] = platform_variables.pop("HF_HOME")
    platform_variables |= {
        "BT_TRAINING_JOB_ID": job.id,
        JOB_FOLDER_VARIABLE: str(folders.root),
        "BT_TRAINING_JOB_NAME": spec.name or "",
        "BT_TRAINING_PROJECT_ID": job.project_id,
        "BT_TRAINING_PROJECT_NAME": job.project_name,
        "BT_NUM_GPUS": str(spec.gpu_count),
        "BT_RETRY_COUNT": "0",
        "BT_GROUP_SIZE": str(spec.node_count),
        "BT_NODE_RANK": str(rank),
        "BT_LEADER_ADDR": "127.0.0.1",
        "BT_SCRATCH_DIR": str(folders.node(rank, SCRATCH)),
        MOUNTS_VARIABLE: str(folders.node(rank, MOUNTS)),
    }
    if visible_gpus is not None:
        platform_variables["CUDA_VISIBLE_DEVICES"] = visible_gpus
        platform_variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # same order as in NVML
    inherited_variables = {
        name: value
        for name, value in inherited.items()
        if name in INHERITED_VARIABLES or name.startswith("LC_")
    }
    # The emulator's Python comes last in PATH, because a machine may have no other Python.
    emulator_python = str(Path(sys.executable).parent)
    inherited_variables["PATH"] = os.pathsep.join(
        filter(None, (inherited_variables.get("PATH"), emulator_python))
    )
    return {
        **inherited_variables,
        **defaults,
        **_user_variables(spec.environment, secret_by_name),
        **platform_variables,
    }


def _user_variables(
    variables: Mapping[str, str | Mapping[str, Any]], secret_by_name: SecretByName
) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in variables.items():
        if isinstance(value, Mapping):
            values[name] = secret_by_name(str(value.get("name")), f"environment variable {name}")
        else:
            values[name] = str(value)
        if not name or "=" in name or "\0" in name:
            raise CannotStart(f"{name!r} is not a valid environment variable name")
        if "\0" in values[name]:
            raise CannotStart(f"environment variable {name}: its value has a NUL character")
    return values


def link_mounts(root: Path, mounts: Iterable[Mount]) -> Iterator[str]:
    """Create a node's links; yield a log line for each mount.

    Of overlapping mounts, only the first is linked.
    """
    for mount in mounts:
        if mount.path is None:
            continue
        # Relative and without "..", so that it is safe to join to another path.
        components = [
            component for component in PurePosixPath(mount.path).parts if component not in ("/", "..")
        ]
        link = root.joinpath(*components) if components else root / "root"
        location = f"${MOUNTS_VARIABLE}{mount.path}"
        parents = link.relative_to(root).parents
        if os.path.lexists(link) or any((root / folder).is_symlink() for folder in parents):
            location = str(mount.target)
        else:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(mount.target)
        location = f"${mount.variable}" if mount.variable else location
        yield f"[emulator] INFO {mount.path} ({mount.content}) is {location} on this machine"


def kill_orphans(job_folder: Path) -> None:
    """Kill all processes of this user that belong to the job.

    This is the last resort, for processes whose supervisor was killed, and for processes of an earlier
    emulator.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            is_of_this_user = process.uids().real == os.getuid() and process.pid != os.getpid()
            if is_of_this_user and process.environ().get(JOB_FOLDER_VARIABLE) == str(job_folder):
                process.kill()
