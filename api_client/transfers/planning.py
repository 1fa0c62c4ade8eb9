"""The files of a job as the server lists them, and fresh URLs for them when the old ones have expired."""

from __future__ import annotations

import asyncio
import shutil
import stat
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from pathlib import Path

from api_client.models import CheckpointFile
from api_client.models.checkpoints import ROOT_CHECKPOINT, belongs_to
from api_client.resources.checkpoints import FILES_PAGE_SIZE, Checkpoints
from api_client.transfers.file_names import ServerName, lay_out
from api_client.transfers.part_file import Identity, resumable_bytes
from api_client.transfers.records import DownloadError, DownloadPlan, PlannedFile, RefusedName

ARCHIVE = ServerName(0, "")
"""The key of a job's archive, which is in no listing of files."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as it was last listed; ``size_bytes`` is None where the server did not say."""

    key: ServerName
    url: str = field(repr=False)
    size_bytes: int | None
    last_modified: str
    index: int = 0


def as_listed(file: CheckpointFile, index: int = 0) -> ListedFile:
    """A file of the API, with what was null or missing told from zero."""
    says_size = "size_bytes" in file.model_fields_set and file.size_bytes >= 0
    return ListedFile(
        ServerName(file.node_rank, file.relative_file_name),
        file.url,
        file.size_bytes if says_size else None,
        file.last_modified,
        index,
    )


def is_folder_marker(file: ListedFile) -> bool:
    """Whether it is no file but an object store's mark for a folder."""
    return file.key.name.endswith("/") and not file.size_bytes


def chosen(
    files: Iterable[ListedFile],
    checkpoints: Iterable[str] | None,
    patterns: Iterable[str] | None,
    all_checkpoints: Collection[str] = (),
) -> list[ListedFile]:
    """The files of those checkpoints (None: all) that match one of the globs (None: all).

    The checkpoint named ``.`` has the files that are in none of the others, ``all_checkpoints``. A glob is
    tried on the name below the checkpoint's folder, on the whole name, and on the last part of it.
    """
    wanted = None if checkpoints is None else [plain_checkpoint(name) for name in checkpoints]
    others = set(all_checkpoints) - {ROOT_CHECKPOINT}
    globs = None if patterns is None else list(patterns)
    return [
        file
        for file in files
        if (wanted is None or any(belongs_to(file.key.name, checkpoint, others) for checkpoint in wanted))
        and (globs is None or any(_matches(file.key.name, glob) for glob in globs))
    ]


def plain_checkpoint(name: str) -> str:
    """The checkpoint's name without what shells' completion puts around it."""
    return name.removeprefix("./").strip("/") or ROOT_CHECKPOINT


def _matches(name: str, glob: str) -> bool:
    plain = name.removeprefix("./")
    below = plain.partition("/")[2]
    return any(fnmatchcase(text, glob) for text in (plain, below, plain.rpartition("/")[2]) if text)


class UrlBook:
    """The current URL of every file of a run; one renewal serves all files that it comes across."""

    def __init__(
        self, files: Iterable[ListedFile], renew: Callable[[ListedFile], Awaitable[Renewed]]
    ) -> None:
        self._files = {file.key: file for file in files}
        self._renew = renew
        self._lock = asyncio.Lock()

    def __getitem__(self, key: ServerName) -> ListedFile:
        return self._files[key]

    async def renewed(self, stale: ListedFile) -> ListedFile:
        """The file with another URL than ``stale`` has. Raises DownloadError if it is not listed any more.

        Raises what listing the files raises, too.
        """
        async with self._lock:
            current = self._files[stale.key]
            if current is not stale:
                return current
            found = await self._renew(stale)
            for file in found:
                if file.key in self._files:
                    self._files[file.key] = file
            if self._files[stale.key] is stale:
                raise DownloadError("the job has this file no more")
            return self._files[stale.key]


Renewed = list[ListedFile]


async def list_again(checkpoints: Checkpoints, project_id: str, job_id: str, wanted: ListedFile) -> Renewed:
    """The pages of the listing up to the one with the wanted file, that where it was first.

    Nothing but what was seen: whoever wants other files will ask again.
    """
    first = wanted.index // FILES_PAGE_SIZE * FILES_PAGE_SIZE
    seen: Renewed = []
    following: int | None = first
    asked: set[int] = set()
    while following is not None and following not in asked:
        token = following
        asked.add(token)
        page = await checkpoints.files_page(project_id, job_id, page_token=token)
        files = [as_listed(file, token + place) for place, file in enumerate(page.presigned_urls)]
        seen += files
        if any(file.key == wanted.key for file in files):
            break
        following = page.next_page_token if files else None
        if following is None and 0 not in asked:
            # Files were added or taken away before it: look from the beginning.
            following = 0
    return seen


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
