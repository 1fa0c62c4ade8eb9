"""Which of a container's absolute paths a job needs, and what its log says of them."""

from __future__ import annotations

from pathlib import PurePosixPath

from api_client.emulator.runner.environment import MOUNTS_VARIABLE
from api_client.emulator.runner.folders import CacheFolders, JobFolders
from api_client.emulator.runner.mounts import CannotLink, Mount, SystemLinks, hang_up
from api_client.emulator.runner.spec import JobSpec
from api_client.emulator.runner.weights import parse_weights

LEGACY_HUGGING_FACE_MOUNT = "/root/.cache/huggingface"
PROJECT_CACHE, TEAM_CACHE = "user_artifacts", "team_artifacts"


def mounts_of(spec: JobSpec, folders: JobFolders, caches: CacheFolders | None) -> list[Mount]:
    """Everything that a container would have at an absolute path; raises ``CannotStart`` for bad weights."""
    mounts = [
        Mount(weights.mount_location, folders.weights(index), f"weights {weights.source}")
        for index, weights in enumerate(parse_weights(spec.weights))
    ]
    if spec.load_from is not None:
        mounts.append(
            Mount(
                spec.load_folder, folders.loaded_checkpoints, "loaded checkpoints", "BT_LOAD_CHECKPOINT_DIR"
            )
        )
    if spec.checkpointing and spec.checkpoint_path:
        mounts += [
            Mount(
                spec.checkpoint_path,
                folders.node(rank).checkpoints,
                f"checkpoints of node-{rank}",
                "BT_CHECKPOINT_DIR",
                node_rank=rank,
            )
            for rank in range(spec.node_count)
        ]
    if caches is not None:
        base = PurePosixPath(spec.cache_mount)
        mounts += [
            Mount(str(base / PROJECT_CACHE), caches.project, "project cache", "BT_PROJECT_CACHE_DIR"),
            Mount(str(base / TEAM_CACHE), caches.team, "team cache", "BT_TEAM_CACHE_DIR"),
        ]
        if spec.legacy_hf_mount:
            mounts.append(
                Mount(LEGACY_HUGGING_FACE_MOUNT, caches.legacy_hugging_face, "Hugging Face cache", "HF_HOME")
            )
    return mounts


def make_mounts(
    job_id: str, spec: JobSpec, folders: JobFolders, caches: CacheFolders | None, links: SystemLinks
) -> list[str]:
    """Make the paths reachable as far as this machine allows; returns what the log should say of each.

    In a thread. A path of which every node has its own can be linked for one node alone.
    """
    mounts = mounts_of(spec, folders, caches)
    refused = [
        mount for rank in range(spec.node_count) for mount in hang_up(mounts, folders.node(rank).mounts, rank)
    ]
    said: dict[str, str] = {}
    for mount in mounts:
        try:
            if mount.node_rank is not None and spec.node_count > 1:
                raise CannotLink("every node has its own")
            links.make(job_id, mount.path, mount.target)
        except CannotLink as reason:
            text = f"is no path of this machine ({reason}): use {_where(mount, refused)} for the {mount.what}"
        else:
            text = f"is a link to the {mount.what} while the job runs"
        said.setdefault(mount.path, f"[emulator] INFO {mount.path} {text}")
    return list(said.values())


def _where(mount: Mount, refused: list[Mount]) -> str:
    if mount.variable is not None:
        return f"${mount.variable}"
    if mount in refused:
        return str(mount.target)
    return f"${MOUNTS_VARIABLE}{mount.path}"
