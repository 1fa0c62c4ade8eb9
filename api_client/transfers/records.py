"""Records of a download: its plan, its progress (measured by ``ProgressMeter``), and its result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from api_client.errors import ApiClientError


class ServerName(NamedTuple):
    """Identifies a file of a job; the same name may exist once per node."""

    node_rank: int
    name: str


class Existing(StrEnum):
    """What to do about an existing file that differs from the server's file.

    A file with the same size and modification time does not differ (downloads set the server's times), and is
    always skipped.
    """

    SKIP = "skip"
    OVERWRITE = "overwrite"
    RENAME = "rename"


class FileState(StrEnum):
    """State of a file; ``SKIPPED`` means that it already existed."""

    WAITING = "waiting"
    ACTIVE = "active"
    VERIFYING = "verifying"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """True if the file's state will not change again in this run."""
        return self in (FileState.DONE, FileState.SKIPPED, FileState.FAILED)


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to download."""

    name: str
    """The server's name; sanitize it before showing it."""

    path: Path
    """The destination, always inside the plan's folder."""

    size_bytes: int | None
    """None if the server did not send it."""

    url: str = field(repr=False)
    """Presigned URL; when it has expired, the download requests a new URL."""

    node_rank: int = 0
    last_modified: str = ""
    part_bytes: int = 0
    """Number of bytes that an earlier run has stored in the part file."""

    @property
    def key(self) -> ServerName:
        """Identifies the file within the job; the URL does not, because it changes."""
        return ServerName(self.node_rank, self.name)

    @property
    def missing_bytes(self) -> int:
        """Bytes still to fetch; 0 if the size is unknown."""
        return max(0, (self.size_bytes or 0) - self.part_bytes)


@dataclass(frozen=True, slots=True)
class RefusedName:
    """A file that is not fetched because of its name on the server, and the reason."""

    name: str
    reason: str
    node_rank: int = 0


@dataclass(frozen=True, slots=True)
class DownloadPlan:
    """Plan of which files to write where. Nothing has been written yet."""

    project_id: str
    job_id: str
    folder: Path
    files: tuple[PlannedFile, ...]
    needed_bytes: int = 0
    """Bytes still to download, without the bytes that are already stored."""

    free_bytes: int | None = None
    """Disk space available; None if unknown."""

    conflicts: tuple[PlannedFile, ...] = ()
    """Files whose path exists with another size or modification time, or is not a regular file."""

    refused: tuple[RefusedName, ...] = ()
    absent: tuple[str, ...] = ()
    """Requested checkpoints without files in the listing."""

    is_archive: bool = False
    unpack_to: Path | None = None
    """Folder for an archive's content."""

    @property
    def total_bytes(self) -> int:
        """Size of all files; unknown sizes count as 0."""
        return sum(file.size_bytes or 0 for file in self.files)

    @property
    def has_room(self) -> bool:
        """True if the disk has enough space for the missing bytes, or if that is unknown."""
        return self.free_bytes is None or self.needed_bytes <= self.free_bytes


@dataclass(frozen=True, slots=True)
class FileProgress:
    """Progress of one file."""

    name: str
    path: Path
    """Where the file is or will be."""

    state: FileState = FileState.WAITING
    done_bytes: int = 0
    size_bytes: int | None = None
    """None until the size is known."""

    error: str = ""
    """Why the file failed; empty if it did not fail."""

    note: str = ""
    """Why the download waits or starts over, such as an expired URL."""

    verified_by: str = ""
    """How the bytes were verified: ``size``, or a digest algorithm."""

    is_retryable: bool = False
    """True if the file failed with a network or server error, so that another run may succeed."""


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """Progress of the whole run; ``files`` are in the plan's order."""

    files: tuple[FileProgress, ...]
    done_bytes: int = 0
    """Bytes stored so far. Skipped files are not counted, neither here nor in ``total_bytes``."""

    total_bytes: int = 0
    speed_bytes_per_s: float = 0.0
    """Average over the last 5 seconds."""

    eta_s: float | None = None
    """None if unknown."""

    files_done: int = 0
    stalled_s: float = 0.0
    """Seconds since the last byte arrived; 0 unless they are at least ``PAUSE_S``."""

    note: str = ""
    """The latest ``note`` of any file; empty once data arrives more than ``PAUSE_S`` after the note."""


OnProgress = Callable[[DownloadProgress], object]  # called a few times a second, and at the end


PAUSE_S = 3.0
"""A run has stalled after this time without data; its note is dropped after this time with data."""


class ProgressMeter:
    """Counts the bytes of a run. ``monotonic`` returns monotonic seconds."""

    def __init__(self, files: Sequence[FileProgress], monotonic: Callable[[], float]) -> None:
        self._files = list(files)
        self._monotonic = monotonic
        self.fetched_bytes = 0
        self._note = ""
        self._noted_s = self._last_arrival_s = monotonic()
        self._samples: deque[tuple[float, int]] = deque([(monotonic(), 0)])

    @property
    def files(self) -> tuple[FileProgress, ...]:
        return tuple(self._files)

    def change(self, index: int, **changes: Any) -> None:
        """Update a file's progress; ``note`` also becomes the run's latest note."""
        self._files[index] = replace(self._files[index], **changes)
        if changes.get("note"):
            self._note, self._noted_s = changes["note"], self._monotonic()
        if "state" in changes:
            self._last_arrival_s = self._monotonic()  # a file that has just started is not stalled

    def count_arrived(self, index: int, size_bytes: int) -> None:
        """Count bytes that arrived for a file."""
        self.fetched_bytes += size_bytes
        self._last_arrival_s = self._monotonic()
        file = self._files[index]
        file = self._files[index] = replace(file, done_bytes=file.done_bytes + size_bytes)
        if self._last_arrival_s - self._noted_s > PAUSE_S:
            self._note, self._files[index] = "", replace(file, note="")

    def progress(self) -> DownloadProgress:
        now_s = self._monotonic()
        counted_files = [file for file in self._files if file.state is not FileState.SKIPPED]
        # Failed files are not retried in this run, so they don't count towards the ETA.
        open_files = [file for file in counted_files if not file.state.is_final]
        remaining_bytes = sum(max(0, (file.size_bytes or 0) - file.done_bytes) for file in open_files)
        is_known = all(file.size_bytes is not None for file in open_files)
        speed = self._speed(now_s)
        states = {file.state for file in self._files}
        silent_s = now_s - self._last_arrival_s
        may_stall = FileState.ACTIVE in states and FileState.VERIFYING not in states
        return DownloadProgress(
            files=self.files,
            done_bytes=sum(file.done_bytes for file in counted_files),
            total_bytes=sum(max(file.size_bytes or 0, file.done_bytes) for file in counted_files),
            speed_bytes_per_s=speed,
            eta_s=remaining_bytes / speed if speed and is_known else None,
            files_done=sum(file.state in (FileState.DONE, FileState.SKIPPED) for file in self._files),
            stalled_s=silent_s if may_stall and silent_s >= PAUSE_S else 0.0,
            note=self._note,
        )

    def _speed(self, now_s: float) -> float:
        samples = self._samples
        samples.append((now_s, self.fetched_bytes))
        while len(samples) > 2 and samples[1][0] <= now_s - 5.0:
            samples.popleft()
        began_s, bytes_before = samples[0]
        return (self.fetched_bytes - bytes_before) / (now_s - began_s) if now_s > began_s else 0.0


@dataclass(frozen=True, slots=True)
class DownloadReport:
    """Result of a run. ``fetched_bytes`` is the number of bytes received over the network."""

    folder: Path
    files: tuple[FileProgress, ...]
    refused: tuple[RefusedName, ...]
    fetched_bytes: int
    elapsed_s: float
    unpacked_to: Path | None = None

    @property
    def failed(self) -> tuple[FileProgress, ...]:
        """Files that were not completed; running the same plan again resumes them."""
        return tuple(file for file in self.files if file.state is FileState.FAILED)

    @property
    def is_complete(self) -> bool:
        """True if every file of the plan exists locally and none was rejected."""
        return not self.failed and not self.refused


class DownloadError(ApiClientError):
    """A download failed because of the file or the file system; failed requests raise RequestError."""


class NoArchive(DownloadError):
    """The job has no code archive. If the server returned an error, it is this exception's cause."""


class NoRoom(DownloadError):
    """The disk has too little space; partial files stay, and the next run resumes them."""


class DestinationExists(DownloadError):
    """The folder or archive to write already exists (``path``) and is left unchanged."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} already exists: remove it, or choose another directory")
        self.path = path
