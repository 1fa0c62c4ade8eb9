"""What a job's processes find on this machine: the documented BT_ variables, and container paths.

The user's variables override inherited ones; the platform's override both. Nothing is created at absolute
paths of this machine: every node has a ``mounts`` folder with links in place of the container's paths, and
``$BT_EMULATOR_ROOT/app/models/llama`` leads to what a container has at ``/app/models/llama``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import psutil

from api_client.definitions.job_request import JobRequest
from api_client.definitions.jobs import WORKING_FOLDER
from api_client.emulator.runner.folders import (
    PROJECT_CACHE,
    TEAM_CACHE,
    CacheFolders,
    CannotStart,
    JobFolders,
    contained,
)
from api_client.emulator.runner.weights import parse_weights
from api_client.models import ProjectSummary

INHERITED = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR",
        "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    }
)  # fmt: skip
"""Variables that a job inherits from the emulator: never a key, never a proxy with a password."""
INHERITED_PREFIXES = ("LC_",)

LEADER_ADDRESS = "127.0.0.1"
FOLDER_MARKER = "BT_EMULATOR_JOB_DIR"
"""Marks the processes of this emulator's job, wherever they escape to."""

MOUNTS_VARIABLE = "BT_EMULATOR_ROOT"
"""Root of the container's absolute paths on a node.

It is unset on the platform, so that ``$BT_EMULATOR_ROOT/app/model`` is correct in both places.
"""

SecretByName = Callable[[str, str], str]
"""Returns a secret's value by its name and what refers to it; raises ``CannotStart`` if there is none."""


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in INHERITED or name.startswith(INHERITED_PREFIXES)
    }


def resolved(variables: Mapping[str, str | Mapping[str, Any]], resolve: SecretByName) -> dict[str, str]:
    """Fill in secrets in the user's variables; raise ``CannotStart`` naming a missing secret."""
    values: dict[str, str] = {}
    for name, value in variables.items():
        if isinstance(value, Mapping):
            values[name] = resolve(str(value.get("name")), f"environment variable {name}")
        else:
            values[name] = str(value)
        if not name or "=" in name or "\0" in name + values[name]:
            raise CannotStart(f"{name!r} is not a valid environment variable name")
    return values


def node_environment(
    spec: JobRequest,
    *,
    job_id: str,
    project: ProjectSummary,
    rank: int,
    folders: JobFolders,
    caches: CacheFolders | None,
    base: Mapping[str, str],
    user_variables: Mapping[str, str],
    visible_gpus: str | None,
) -> dict[str, str]:
    """Build all variables of a node. ``visible_gpus`` lists the node's share of the machine's GPUs."""
    node = folders.node(rank)
    platform = {
        "BT_TRAINING_JOB_ID": job_id,
        FOLDER_MARKER: str(folders.root),
        "BT_TRAINING_JOB_NAME": spec.name or "",
        "BT_TRAINING_PROJECT_ID": project.id,
        "BT_TRAINING_PROJECT_NAME": project.name,
        "BT_NUM_GPUS": str(spec.gpu_count),
        "BT_RETRY_COUNT": "0",
        "BT_GROUP_SIZE": str(spec.node_count),
        "BT_NODE_RANK": str(rank),
        "BT_LEADER_ADDR": LEADER_ADDRESS,
        "BT_SCRATCH_DIR": str(node.scratch),
        MOUNTS_VARIABLE: str(node.mounts),
    }
    if spec.uses_workdir:
        platform["BT_WORKING_DIR"] = str(node.workspace)
    if spec.checkpointing:
        platform["BT_CHECKPOINT_DIR"] = str(node.checkpoints)
    if spec.load_from is not None:
        platform["BT_LOAD_CHECKPOINT_DIR"] = str(folders.loaded_checkpoints)
    if caches is not None:
        platform["BT_RW_CACHE_DIR"] = str(caches.base)
        platform["BT_PROJECT_CACHE_DIR"] = str(caches.project)
        platform["BT_TEAM_CACHE_DIR"] = str(caches.team)
    if visible_gpus is not None:
        platform["CUDA_VISIBLE_DEVICES"] = visible_gpus
        platform["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # same order as in NVML
    # Without this Python buffers output that does not go to a terminal, and log lines arrive late.
    defaults = {"PYTHONUNBUFFERED": "1", "PWD": str(node.workspace)}
    if caches is not None and spec.legacy_hf_mount:
        defaults["HF_HOME"] = str(caches.legacy_hugging_face)
    return {**base, **defaults, **user_variables, **platform}


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
    if spec.uses_workdir:
        workspace = folders.node(rank).workspace
        yield Mount(WORKING_FOLDER, workspace, "working directory", "BT_WORKING_DIR")
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


def kill_orphans(job_folder: Path) -> None:
    """Kill all processes of this user that belong to the job.

    This is the last resort, for processes whose supervisor was killed or that an earlier emulator left
    behind.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            is_own = process.uids().real == os.getuid() and process.pid != os.getpid()
            if is_own and process.environ().get(FOLDER_MARKER) == str(job_folder):
                process.kill()
