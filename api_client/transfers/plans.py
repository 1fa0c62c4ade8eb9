"""Plan downloads: select files of a listing, map them to paths, and check which files already exist."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path

from api_client.clock import EPOCH
from api_client.models import CheckpointFile
from api_client.models.base import moment_of_text
from api_client.models.checkpoints import ROOT_CHECKPOINT, belongs_to
from api_client.transfers.file_names import resolve_names
from api_client.transfers.part_file import stored_part_bytes
from api_client.transfers.records import DownloadPlan, PlannedFile, RefusedName


def to_planned_file(file: CheckpointFile) -> PlannedFile:
    """Convert a file of the API; its path is set later. A null or missing size is None, not zero."""
    has_size = "size_bytes" in file.model_fields_set and file.size_bytes >= 0
    return PlannedFile(
        file.relative_file_name,
        Path(),
        file.size_bytes if has_size else None,
        file.url,
        file.node_rank,
        file.last_modified,
    )


def select_files(
    files: Iterable[PlannedFile],
    checkpoints: Iterable[str] | None,
    patterns: Iterable[str] | None,
    all_checkpoints: Collection[str] = (),
) -> list[PlannedFile]:
    """Return the files of these checkpoints (None: all) that match one of the globs (None: all).

    The checkpoint ``.`` holds the files that belong to none of ``all_checkpoints``. A glob is matched against
    the name below the checkpoint's folder, the whole name, and the base name.
    """
    names = None if checkpoints is None else [checkpoint_name_of(name) for name in checkpoints]
    globs = None if patterns is None else list(patterns)
    return [
        file
        for file in files
        if (names is None or any(belongs_to(file.name, name, all_checkpoints) for name in names))
        and (globs is None or any(_matches(file.name, glob) for glob in globs))
    ]


def checkpoint_name_of(name: str) -> str:
    """Strip the ``./`` and ``/`` that shell completion adds to a checkpoint's name."""
    return name.removeprefix("./").strip("/") or ROOT_CHECKPOINT


def _matches(name: str, glob: str) -> bool:
    full_name = name.removeprefix("./")
    inside_checkpoint = full_name.partition("/")[2]
    return any(
        fnmatchcase(text, glob)
        for text in (full_name, inside_checkpoint, full_name.rpartition("/")[2])
        if text
    )


def make_plan(
    project_id: str, job_id: str, folder: Path, files: Sequence[PlannedFile], *, by_rank: bool
) -> DownloadPlan:
    """Map the files to paths below ``folder``, and check which of them already exist. Writes nothing."""
    # Some object stores list empty objects as markers for folders; skip these.
    by_key = {file.key: file for file in files if file.size_bytes or not file.name.endswith("/")}
    planned_files, refused = [], []
    for file, target in zip(by_key.values(), resolve_names(list(by_key), by_rank=by_rank), strict=True):
        if target.parts:
            planned_files.append(replace(file, path=folder.joinpath(*target.parts)))
        else:
            refused.append(RefusedName(file.name, target.reason, file.node_rank))
    plan = DownloadPlan(project_id, job_id, folder, tuple(planned_files), refused=tuple(refused))
    return refreshed_plan(plan)


def refreshed_plan(plan: DownloadPlan) -> DownloadPlan:
    """Return the plan, updated from the disk: part files, conflicts, free space."""
    files = tuple(
        replace(
            file, part_bytes=stored_part_bytes(file.path, identity_line(file, plan.job_id), file.size_bytes)
        )
        for file in plan.files
    )
    missing = [file for file in files if not is_downloaded(file)]
    return replace(
        plan,
        files=files,
        needed_bytes=sum(file.missing_bytes for file in missing),
        free_bytes=free_bytes(plan.folder),
        conflicts=tuple(file for file in missing if os.path.lexists(file.path)),
    )


def identity_line(file: PlannedFile, job_id: str) -> str:
    """Return the line of a record that identifies the listed file, its size and its modification time."""
    return json.dumps([job_id, file.name, file.node_rank, file.last_modified, file.size_bytes])


def is_downloaded(file: PlannedFile, path: Path | None = None) -> bool:
    """Return True if the file is already downloaded: a regular file of the same size and modification time.

    This is rsync's rule. Downloads set the server's modification time on their files; if the server sent no
    time, the same size is enough.
    """
    try:
        status = (path or file.path).lstat()
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size != file.size_bytes:
        return False
    modified_s = modified_epoch_s(file.last_modified)
    # Some file systems store modification times in steps of two seconds.
    return modified_s is None or abs(status.st_mtime - modified_s) <= 2.0


def modified_epoch_s(text: str) -> float | None:
    """Parse a server's modification time into epoch seconds; None if it is invalid or unset."""
    moment = moment_of_text(text)
    return moment.timestamp() if moment is not None and moment > EPOCH else None


def free_bytes(folder: Path) -> int | None:
    """Return the free bytes on the disk of the folder, which need not exist; None if unknown."""
    for candidate in (folder.absolute(), *folder.absolute().parents):
        try:
            return shutil.disk_usage(candidate).free
        except OSError:
            continue
    return None


def alternative_path(file: PlannedFile) -> Path:
    """Return the first path ``<stem>.<number><suffix>`` that is free or already has this file."""
    path = file.path
    candidates = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in count(1))
    return next(path for path in candidates if is_downloaded(file, path) or not os.path.lexists(path))
