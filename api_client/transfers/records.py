"""What a download is made of: a plan, the progress of running it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from api_client.errors import ApiClientError


class Existing(StrEnum):
    """What to do with a file that is there already and is not the same.

    A file of the same size and time is the same (downloads have the server's times): it is always skipped.
    ``ASK`` raises FilesExist before anything is fetched, so that somebody can be asked.
    """

    SKIP = "skip"
    OVERWRITE = "overwrite"
    RENAME = "rename"
    ASK = "ask"


class FileState(StrEnum):
    """How far a file is; ``SKIPPED``: it was there already."""

    WAITING = "waiting"
    ACTIVE = "active"
    VERIFYING = "verifying"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen to the file in this run."""
        return self in (FileState.DONE, FileState.SKIPPED, FileState.FAILED)


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file to fetch.

    ``name`` is the server's own (to be made inert before it is shown), ``node_rank`` its node's.
    ``path`` is where it goes: always inside of the plan's folder. ``size_bytes`` is None where the server
    did not say. ``url`` is presigned, and renewed when it has expired; ``listing_index`` is the file's
    place in the server's listing, where a renewal looks first. ``part_bytes`` are here already.
    """

    name: str
    path: Path
    size_bytes: int | None
    url: str = field(repr=False)
    node_rank: int = 0
    last_modified: str = ""
    listing_index: int = 0
    part_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RefusedName:
    """A file that is not fetched because of what the server calls it, and why."""

    name: str
    reason: str
    node_rank: int = 0


@dataclass(frozen=True, slots=True)
class DownloadPlan:
    """What would be written where. Nothing has been written yet.

    ``total_bytes`` is the size of all files, ``needed_bytes`` the room they still need on the disk (what
    is there, whole or in part, taken off), ``free_bytes`` the room that there is (None: unknown).
    ``conflicts`` are the files whose path is taken by something of another size or time.
    ``unknown_sizes`` counts the files whose size the server did not say. ``absent`` are checkpoints that
    were asked for and have no file in the listing. ``unpack_to`` is the folder for an archive's content.
    """

    project_id: str
    job_id: str
    folder: Path
    files: tuple[PlannedFile, ...]
    total_bytes: int = 0
    needed_bytes: int = 0
    free_bytes: int | None = None
    conflicts: tuple[PlannedFile, ...] = ()
    refused: tuple[RefusedName, ...] = ()
    unknown_sizes: int = 0
    absent: tuple[str, ...] = ()
    is_archive: bool = False
    unpack_to: Path | None = None

    @property
    def has_room(self) -> bool:
        """Whether the disk has room for what is missing, as far as that is known."""
        return self.free_bytes is None or self.needed_bytes <= self.free_bytes


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far one file is. ``size_bytes`` is None until it is known; ``error`` is set if it failed.

    ``note`` tells of a wait or a new URL, in words; ``path`` is where the file is or will be.
    ``verified_by`` names what vouches for its bytes: ``size``, or a digest's algorithm. ``is_retryable``
    tells of an error of the network's or the server's, that may be over the next time.
    """

    name: str
    path: Path
    state: FileState = FileState.WAITING
    done_bytes: int = 0
    size_bytes: int | None = None
    error: str = ""
    note: str = ""
    verified_by: str = ""
    is_retryable: bool = False


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """How far the whole is; ``files`` in the plan's order.

    ``done_bytes`` and ``total_bytes`` leave out what was skipped. ``resumed_bytes`` of ``done_bytes`` were
    here before this run. ``speed_bytes_per_s`` is that of the last seconds, ``eta_s`` follows from it
    (None: no telling). ``stalled_s`` is for how long nothing has arrived, where that is longer than usual;
    else 0. ``note`` is the latest wait or renewal in words, until bytes have arrived for a while.
    """

    files: tuple[FileProgress, ...]
    done_bytes: int = 0
    total_bytes: int = 0
    resumed_bytes: int = 0
    speed_bytes_per_s: float = 0.0
    eta_s: float | None = None
    files_done: int = 0
    files_failed: int = 0
    stalled_s: float = 0.0
    note: str = ""

    @property
    def is_final(self) -> bool:
        """Whether every file has come to an end."""
        return all(file.state.is_final for file in self.files)


OnProgress = Callable[[DownloadProgress], object]
"""Hears how far a download is, on the event loop, a few times a second, and once at the end."""


@dataclass(frozen=True, slots=True)
class DownloadReport:
    """What came of a run. ``fetched_bytes`` crossed the network; ``finished_at`` is aware, in UTC."""

    folder: Path
    files: tuple[FileProgress, ...]
    refused: tuple[RefusedName, ...]
    fetched_bytes: int
    elapsed_s: float
    finished_at: datetime
    unpacked_to: Path | None = None

    @property
    def failed(self) -> tuple[FileProgress, ...]:
        """The files that are not here; running the same plan again goes on where they stopped."""
        return tuple(file for file in self.files if file.state is FileState.FAILED)

    @property
    def is_complete(self) -> bool:
        """Whether every file of the plan is here, and none was refused."""
        return not self.failed and not self.refused


class DownloadError(ApiClientError):
    """Something on this machine, or about the files themselves, keeps them from being written."""


class NoArchive(DownloadError):
    """The job has no code to download; the server's words, if it had any, are in the message."""


class NoRoom(DownloadError):
    """The disk has too little room; parts that are there stay, and the next run goes on with them."""


class FilesExist(DownloadError):
    """Files of other content are in the way: ``conflicts``. Somebody must say what to do with them."""

    def __init__(self, message: str, conflicts: Sequence[PlannedFile]) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class DestinationExists(DownloadError):
    """The folder or archive that would be written is there already (``path``), and is left alone."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already: remove it, or choose another directory")
        self.path = path
