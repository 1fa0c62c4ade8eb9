"""Container paths on this machine.

The content of a container's ``/app/models/llama`` is below the job's folder here. It can be reached in
two ways. ``$BT_EMULATOR_ROOT/app/models/llama`` always works: every node has a ``mounts`` folder with
links in place of the container's paths (on the platform the variable is unset, so the same text works
there). If this machine allows it, ``/app/models/llama`` works too, through a symlink that lasts as long
as a job needs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from api_client.emulator.data_folder import write_private
from api_client.emulator.runner.environment import MOUNTS_VARIABLE
from api_client.emulator.runner.folders import CacheFolders, JobFolders, contained
from api_client.emulator.runner.spec import JobSpec
from api_client.emulator.runner.weights import parse_weights


@dataclass(frozen=True, slots=True)
class Mount:
    """A container path (``path``) and its location on this machine (``target``).

    ``what`` describes it in log lines; ``variable`` is an environment variable with its location, if any.
    ``node_rank`` is set for mounts that every node has separately.
    """

    path: str
    target: Path
    what: str
    variable: str | None = None
    node_rank: int | None = None


@dataclass(slots=True)
class _Link:
    target: str
    made_folders: list[str]
    jobs: set[str] = field(default_factory=set)


class CannotLink(Exception):
    """A path of this machine cannot become a symlink; the message says why."""


class SystemLinks:
    """Symlinks at absolute paths of this machine, shared by the jobs that need the same one.

    They are recorded in ``record`` before they are created, so that the next emulator can remove those of
    a killed one. Safe from any thread.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        self._lock = threading.Lock()
        self._links: dict[str, _Link] = {}

    def make(self, job_id: str, path: str, target: Path) -> None:
        """Link ``path`` to ``target`` until the job ends; raise ``CannotLink`` if that is impossible."""
        place = PurePosixPath(path)
        if not place.is_absolute() or ".." in place.parts or "\0" in path:
            raise CannotLink("not a plain absolute path")
        with self._lock:
            known = self._links.get(str(place))
            if known is not None:
                if known.target != str(target):
                    raise CannotLink("used by another job")
                known.jobs.add(job_id)
                return
            self._make(job_id, Path(place), target)

    def release(self, job_id: str) -> None:
        """Remove the links of a job that has ended, except those that other jobs need."""
        with self._lock:
            for path, link in list(self._links.items()):
                link.jobs.discard(job_id)
                if not link.jobs:
                    del self._links[path]
                    _remove(path, link.target, link.made_folders)
            self._write()

    def clear_leftovers(self) -> None:
        """Remove links left behind by an emulator that was killed."""
        with self._lock:
            for path, link in self._read().items():
                with contextlib.suppress(KeyError, TypeError):
                    _remove(path, str(link["target"]), [str(folder) for folder in link["made_folders"]])
            self._record.unlink(missing_ok=True)

    def _make(self, job_id: str, place: Path, target: Path) -> None:
        if any(str(folder) in self._links for folder in place.parents):
            raise CannotLink("inside another mount")
        if os.path.lexists(place):
            raise CannotLink("something else is there on this machine")
        missing = [folder for folder in reversed(place.parents) if not os.path.lexists(folder)]
        link = _Link(str(target), [str(folder) for folder in missing], {job_id})
        self._links[str(place)] = link
        self._write()
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)
        except OSError as error:
            del self._links[str(place)]
            _remove(str(place), link.target, link.made_folders)
            self._write()
            raise CannotLink(error.strerror or str(error)) from error

    def _read(self) -> Mapping[str, Any]:
        try:
            kept = json.loads(self._record.read_bytes())
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _write(self) -> None:
        if not self._links:
            self._record.unlink(missing_ok=True)
            return
        kept = {
            path: {"target": link.target, "made_folders": link.made_folders}
            for path, link in self._links.items()
        }
        write_private(self._record, json.dumps(kept).encode())


def link_mounts(mounts: Sequence[Mount], root: Path, node_rank: int) -> list[Mount]:
    """Symlink container paths below the node's ``root``; return the mounts that failed.

    If two mounts have the same path, the first wins. Mounts inside another mount are refused.
    """
    root.mkdir(parents=True, exist_ok=True)
    refused = []
    for mount in mounts:
        if mount.node_rank not in (None, node_rank):
            continue
        place = root / contained(mount.path)
        inside = place.relative_to(root).parents
        if os.path.lexists(place) or any((root / folder).is_symlink() for folder in inside):
            refused.append(mount)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(mount.target)
    return refused


def _remove(path: str, target: str, made_folders: list[str]) -> None:
    """Remove our own link and the folders created for it, if they are empty."""
    with contextlib.suppress(OSError):
        if os.readlink(path) == target:  # noqa: PTH115 – pathlib would give a Path that has lost its spelling
            Path(path).unlink()
    for folder in reversed(made_folders):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


LEGACY_HUGGING_FACE_MOUNT = "/root/.cache/huggingface"
PROJECT_CACHE, TEAM_CACHE = "user_artifacts", "team_artifacts"


def mounts_of(spec: JobSpec, folders: JobFolders, caches: CacheFolders | None) -> list[Mount]:
    """Return all mounts that a container would have; raise ``CannotStart`` for invalid weights."""
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
    """Create the mounts that this machine allows; return a log line for each path. Runs in a thread.

    A path that differs between nodes can be linked only if the job has a single node.
    """
    mounts = mounts_of(spec, folders, caches)
    refused = [
        mount
        for rank in range(spec.node_count)
        for mount in link_mounts(mounts, folders.node(rank).mounts, rank)
    ]
    said: dict[str, str] = {}
    for mount in mounts:
        try:
            if mount.node_rank is not None and spec.node_count > 1:
                raise CannotLink("each node has its own")
            links.make(job_id, mount.path, mount.target)
        except CannotLink as reason:
            where = _where(mount, refused)
            text = f"can't be used on this machine ({reason}): use {where} for the {mount.what}"
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
