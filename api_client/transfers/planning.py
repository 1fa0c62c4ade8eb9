"""Plan a download: the files as the server lists them, what exists on disk, and renewed URLs."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from api_client.models import CheckpointFile
from api_client.models.checkpoints import ROOT_CHECKPOINT, belongs_to
from api_client.resources.checkpoints import Checkpoints
from api_client.transfers.file_names import ServerName, lay_out
from api_client.transfers.part_file import FileIdentity, resumable_bytes
from api_client.transfers.records import DownloadError, DownloadPlan, PlannedFile, RefusedName


def from_api_file(file: CheckpointFile) -> PlannedFile:
    """Convert a file of the API, without a path yet; a null or missing size is None, not zero."""
    says_size = "size_bytes" in file.model_fields_set and file.size_bytes >= 0
    return PlannedFile(
        file.relative_file_name,
        Path(),
        file.size_bytes if says_size else None,
        file.url,
        file.node_rank,
        file.last_modified,
    )


def chosen(
    files: Iterable[PlannedFile],
    checkpoints: Iterable[str] | None,
    patterns: Iterable[str] | None,
    all_checkpoints: Collection[str] = (),
) -> list[PlannedFile]:
    """Return the files of these checkpoints (None: all) that match one of the globs (None: all).

    The checkpoint ``.`` holds the files that belong to none of the others, ``all_checkpoints``. A glob is
    matched against the name below the checkpoint's folder, the whole name, and its last part.
    """
    wanted = None if checkpoints is None else [plain_checkpoint(name) for name in checkpoints]
    others = set(all_checkpoints) - {ROOT_CHECKPOINT}
    globs = None if patterns is None else list(patterns)
    return [
        file
        for file in files
        if (wanted is None or any(belongs_to(file.name, checkpoint, others) for checkpoint in wanted))
        and (globs is None or any(_matches(file.name, glob) for glob in globs))
    ]


def plain_checkpoint(name: str) -> str:
    """Strip what shell completion adds around a checkpoint's name."""
    return name.removeprefix("./").strip("/") or ROOT_CHECKPOINT


def _matches(name: str, glob: str) -> bool:
    plain = name.removeprefix("./")
    below = plain.partition("/")[2]
    return any(fnmatchcase(text, glob) for text in (plain, below, plain.rpartition("/")[2]) if text)


class UrlCache:
    """Current URL of every file of a run; one renewal updates all files that it finds."""

    def __init__(
        self, files: Iterable[PlannedFile], renew: Callable[[], Awaitable[list[PlannedFile]]]
    ) -> None:
        self._files = {file.key: file for file in files}
        self._renew = renew
        self._lock = asyncio.Lock()

    def __getitem__(self, key: ServerName) -> PlannedFile:
        return self._files[key]

    async def renewed(self, stale: PlannedFile) -> PlannedFile:
        """Return the file with a newer URL than ``stale``. Raises DownloadError if it is no longer listed.

        Also raises the errors of listing the files.
        """
        async with self._lock:
            if self._files[stale.key] is stale:
                for file in await self._renew():
                    if file.key in self._files:
                        self._files[file.key] = replace(file, path=self._files[file.key].path)
                if self._files[stale.key] is stale:
                    raise DownloadError("the job no longer has this file")
            return self._files[stale.key]


async def list_files(checkpoints: Checkpoints, project_id: str, job_id: str) -> list[PlannedFile]:
    return [from_api_file(file) async for file in checkpoints.files(project_id, job_id)]


TIME_TOLERANCE_S = 2.0  # coarsest resolution of modification times in common file systems


def make_plan(
    project_id: str, job_id: str, folder: Path, files: Sequence[PlannedFile], *, by_rank: bool
) -> DownloadPlan:
    """Lay out the files below ``folder`` and check what already exists. Writes nothing."""
    # An object store's folder markers are no files.
    wanted = {file.key: file for file in files if file.size_bytes or not file.name.endswith("/")}
    planned, refused = [], []
    for file, place in zip(wanted.values(), lay_out(list(wanted), by_rank=by_rank), strict=True):
        if place.parts:
            planned.append(replace(file, path=folder.joinpath(*place.parts)))
        else:
            refused.append(RefusedName(file.name, place.reason, file.node_rank))
    plan = DownloadPlan(project_id, job_id, folder, tuple(planned), refused=tuple(refused))
    return refreshed_plan(plan)


def identity_of(file: PlannedFile, job_id: str) -> FileIdentity:
    return FileIdentity(job_id, file.name, file.node_rank, file.last_modified, file.size_bytes)


def refreshed_plan(plan: DownloadPlan) -> DownloadPlan:
    """Return the plan updated with the disk's state: parts, conflicts, free space."""
    files = tuple(
        replace(file, part_bytes=resumable_bytes(file.path, identity_of(file, plan.job_id)))
        for file in plan.files
    )
    conflicts, needed_bytes = [], 0
    for file in files:
        if is_there(file):
            continue
        if os.path.lexists(file.path):
            conflicts.append(file)
        needed_bytes += max(0, (file.size_bytes or 0) - file.part_bytes)
    return replace(
        plan,
        files=files,
        total_bytes=sum(file.size_bytes or 0 for file in files),
        needed_bytes=needed_bytes,
        free_bytes=free_bytes(plan.folder),
        conflicts=tuple(conflicts),
    )


def is_there(file: PlannedFile, path: Path | None = None) -> bool:
    """Return True if the file already exists: a regular file of the same size and time.

    The rule is the same as rsync's. The time is the server's, which downloads set on their files; without
    a time, the same size is enough.
    """
    try:
        found = (path or file.path).lstat()
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_size != file.size_bytes:
        return False
    modified_s = modified(file.last_modified)
    return modified_s is None or abs(found.st_mtime - modified_s) <= TIME_TOLERANCE_S


def modified(text: str) -> float | None:
    """Parse a server's time to epoch seconds; None if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def free_bytes(folder: Path) -> int | None:
    """Return the free space where the folder is, or will be; None if unknown."""
    for candidate in (folder.absolute(), *folder.absolute().parents):
        try:
            return shutil.disk_usage(candidate).free
        except OSError:
            continue
    return None
