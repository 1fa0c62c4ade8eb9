"""From what a server lists to a plan of what would be written where."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from api_client.downloads.listing import ListedFile, is_folder_marker
from api_client.downloads.names import ServerName, lay_out
from api_client.downloads.part_file import Identity, resumable_bytes
from api_client.downloads.records import DownloadPlan, PlannedFile, RefusedName

TIME_TOLERANCE_S = 2.0
"""Coarsest times of files that file systems keep."""


def make_plan(
    project_id: str, job_id: str, folder: Path, files: Sequence[ListedFile], *, by_rank: bool
) -> DownloadPlan:
    """Lay the files out below ``folder`` and look at what is there already. Writes nothing."""
    wanted = list({file.key: file for file in files if not is_folder_marker(file)}.values())
    places = lay_out([file.key for file in wanted], by_rank=by_rank)
    planned, refused = [], []
    for file, place in zip(wanted, places, strict=True):
        if place.parts:
            planned.append(as_planned(file, folder.joinpath(*place.parts)))
        else:
            refused.append(RefusedName(file.key.name, place.reason, file.key.node_rank))
    plan = DownloadPlan(project_id, job_id, folder, tuple(planned), refused=tuple(refused))
    return looked_at(plan)


def as_planned(file: ListedFile, path: Path) -> PlannedFile:
    """A listed file with its path."""
    return PlannedFile(
        file.key.name,
        path,
        file.size_bytes,
        file.url,
        file.key.node_rank,
        file.last_modified,
        file.index,
    )


def as_listed_again(file: PlannedFile) -> ListedFile:
    """A planned file as it stood in the listing."""
    key = ServerName(file.node_rank, file.name)
    return ListedFile(key, file.url, file.size_bytes, file.last_modified, file.listing_index)


def identity_of(file: PlannedFile, job_id: str) -> Identity:
    """What parts of an earlier run must be of, to be parts of this file."""
    return Identity(job_id, file.name, file.node_rank, file.last_modified, file.size_bytes)


def looked_at(plan: DownloadPlan) -> DownloadPlan:
    """The plan with what is true of the disk now: parts, conflicts, room."""
    files = tuple(
        replace(file, part_bytes=resumable_bytes(file.path, identity_of(file, plan.job_id)))
        for file in plan.files
    )
    conflicts, needed_bytes = [], 0
    for file in files:
        if is_there(file):
            continue
        if is_taken(file.path):
            conflicts.append(file)
        needed_bytes += max(0, (file.size_bytes or 0) - file.part_bytes)
    return replace(
        plan,
        files=files,
        total_bytes=sum(file.size_bytes or 0 for file in files),
        needed_bytes=needed_bytes,
        free_bytes=_free_bytes(plan.folder),
        conflicts=tuple(conflicts),
        unknown_sizes=sum(file.size_bytes is None for file in files),
    )


def is_taken(path: Path) -> bool:
    """Whether anything is there, be it a link to nowhere."""
    try:
        path.lstat()
    except OSError:
        return False
    return True


def is_there(file: PlannedFile, path: Path | None = None) -> bool:
    """Whether the file is there already: a plain file of the same size and time.

    Like rsync's rule. The time is the server's, which downloads give to their files; without one the size
    must do.
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
    """A server's time in epoch seconds: ISO 8601 or as in HTTP; None if it is neither."""
    moment: datetime | None = None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        seconds = moment.timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def _free_bytes(folder: Path) -> int | None:
    """The room on the disk that the folder is, or will be, on."""
    for candidate in (folder.absolute(), *folder.absolute().parents):
        try:
            return shutil.disk_usage(candidate).free
        except OSError:
            continue
    return None
