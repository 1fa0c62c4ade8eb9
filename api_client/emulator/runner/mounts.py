"""Container paths on this machine.

Nothing is created at absolute paths of this machine: every node has a ``mounts`` folder with links in
place of the container's paths, and ``$BT_EMULATOR_ROOT/app/models/llama`` leads to what a container has at
``/app/models/llama``. On the platform the variable is unset, so the same text works there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from api_client.definitions.job_request import JobRequest
from api_client.emulator.runner.environment import MOUNTS_VARIABLE
from api_client.emulator.runner.folders import PROJECT_CACHE, TEAM_CACHE, CacheFolders, JobFolders, contained
from api_client.emulator.runner.weights import parse_weights

LEGACY_HUGGING_FACE_MOUNT = "/root/.cache/huggingface"


@dataclass(frozen=True, slots=True)
class Mount:
    """A container path and its location on this machine.

    ``what`` describes it in log lines; ``variable`` is an environment variable with its location, if any.
    """

    path: str
    target: Path
    what: str
    variable: str | None = None


def mounts_of(
    spec: JobRequest, folders: JobFolders, caches: CacheFolders | None, rank: int
) -> Iterator[Mount]:
    """Yield all mounts that a node's container would have; raise ``CannotStart`` for invalid weights."""
    for index, weights in enumerate(parse_weights(spec.weights)):
        yield Mount(weights.mount_location, folders.weights(index), f"weights {weights.source}")
    if spec.load_from is not None:
        loaded = folders.loaded_checkpoints
        yield Mount(spec.load_folder, loaded, "loaded checkpoints", "BT_LOAD_CHECKPOINT_DIR")
    if spec.checkpointing and spec.checkpoint_path:
        saved = folders.node(rank).checkpoints
        yield Mount(spec.checkpoint_path, saved, "checkpoints", "BT_CHECKPOINT_DIR")
    if caches is not None:
        base = PurePosixPath(spec.cache_mount)
        yield Mount(str(base / PROJECT_CACHE), caches.project, "project cache", "BT_PROJECT_CACHE_DIR")
        yield Mount(str(base / TEAM_CACHE), caches.team, "team cache", "BT_TEAM_CACHE_DIR")
        if spec.legacy_hf_mount:
            hub = caches.legacy_hugging_face
            yield Mount(LEGACY_HUGGING_FACE_MOUNT, hub, "Hugging Face cache", "HF_HOME")


def make_mounts(spec: JobRequest, folders: JobFolders, caches: CacheFolders | None, rank: int) -> list[str]:
    """Create a node's mounts; return a log line for each. Runs in a thread.

    Of mounts that overlap only the first gets a link.
    """
    root = folders.node(rank).mounts
    lines = []
    for mount in mounts_of(spec, folders, caches, rank):
        place = root / contained(mount.path)
        where = f"${MOUNTS_VARIABLE}{mount.path}"
        above = place.relative_to(root).parents
        if os.path.lexists(place) or any((root / folder).is_symlink() for folder in above):
            where = str(mount.target)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(mount.target)
        where = f"${mount.variable}" if mount.variable else where
        lines.append(f"[emulator] INFO {mount.path} ({mount.what}) is {where} on this machine")
    return lines
