"""The current state of all downloads, for the footer's indicator and the list of downloads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, count, counted, duration, percent

if TYPE_CHECKING:
    from api_client.models import CheckpointFile, TrainingJob
    from api_client.transfers.records import FileProgress


class TransferState(StrEnum):
    PLANNING = "planning"  # Asking the server which files exist.
    WAITING = "waiting"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({TransferState.DONE, TransferState.FAILED, TransferState.CANCELLED})
RESUMABLE = frozenset({TransferState.FAILED, TransferState.CANCELLED})

STATE_VIEWS: dict[TransferState, tuple[str, str, str]] = {
    TransferState.PLANNING: ("◌", "listing", "waiting"),
    TransferState.WAITING: ("◌", "waiting", "waiting"),
    TransferState.ACTIVE: ("↓", "loading", "running"),
    TransferState.DONE: ("✓", "done", "good"),
    TransferState.FAILED: ("✗", "failed", "bad"),
    TransferState.CANCELLED: ("■", "canceled", "caution"),
}
"""Sign, word and tone of each state."""


STALLED = "stalled"
"""Shown instead of a speed if nothing arrives."""


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """A user's request to download data of a job.

    Either the ``archive`` of its source code, or ``checkpoints``; with ``files`` only those of their
    files, and ``by_rank`` says if nodes other than the first have files of the job (None: not known yet).
    ``size_bytes`` is None if the size is not known in advance.
    """

    job: TrainingJob
    checkpoints: tuple[str, ...] = ()
    files: tuple[CheckpointFile, ...] = ()
    by_rank: bool | None = None
    archive: bool = False
    size_bytes: int | None = None

    @property
    def content(self) -> tuple[object, ...]:
        """Identity of the download: equal for repeated requests of the same data."""
        files = tuple((file.node_rank, file.relative_file_name) for file in self.files)
        return (self.job.id, self.checkpoints, files, self.archive)

    @property
    def title(self) -> str:
        """Display name, sanitized."""
        name = sanitize(self.job.name or self.job.id)
        if self.archive:
            return f"source of {name}"
        if len(self.files) == 1:
            path = self.files[0].relative_file_name
            return sanitize(f"{path.rpartition('/')[2] or path} of {self.checkpoints[0]}")
        if self.files:
            return f"{counted(len(self.files), 'file')} of {name}"
        if len(self.checkpoints) == 1:
            return f"{sanitize(self.checkpoints[0])} of {name}"
        return f"{counted(len(self.checkpoints), 'checkpoint')} of {name}"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A download, created by one request of a user.

    ``speed`` is bytes per second over the last seconds; ``eta_s`` is None while unknown; ``stalled_s`` is
    the time without any data, if that is long. ``note`` mentions a wait or a renewal.
    """

    id: str
    title: str
    folder: str
    state: TransferState
    done_bytes: int = 0
    size_bytes: int | None = None
    speed: float | None = None
    eta_s: float | None = None
    stalled_s: float = 0.0
    files: tuple[FileProgress, ...] = ()
    error: str = ""
    note: str = ""

    @property
    def fraction(self) -> float | None:
        if self.state is TransferState.DONE:
            return 1.0
        return min(1.0, self.done_bytes / self.size_bytes) if self.size_bytes else None

    @property
    def is_running_or_queued(self) -> bool:
        return self.state not in ENDED


@dataclass(frozen=True, slots=True)
class Transfers:
    items: tuple[Transfer, ...] = ()

    @property
    def under_way(self) -> tuple[Transfer, ...]:
        return tuple(item for item in self.items if item.is_running_or_queued)

    def indicator(self) -> str:
        """Return the footer text: ``↓ 2 files 43% 112 MiB/s``; empty if no download is active."""
        active = self.under_way
        if not active:
            return ""
        files = [file for item in active for file in item.files]
        left = sum(not file.state.is_final for file in files)
        if not files:
            return "↓ listing"
        done = sum(item.done_bytes for item in active)
        size = sum(item.size_bytes or 0 for item in active)
        parts = [f"↓ {counted(left, 'file')}"]
        if size:
            parts.append(percent(min(1.0, done / size)))
        speed = sum(item.speed or 0.0 for item in active)
        if any(item.stalled_s for item in active):
            parts.append(STALLED)
        elif speed:
            parts.append(speed_text(speed))
        return " ".join(parts)


def speed_text(bytes_per_s: float | None) -> str:
    """Return ``112 MiB/s``; a dash while unknown."""
    return f"{bytes_iec(bytes_per_s)}/s" if bytes_per_s else "–"


def outcome_text(item: Transfer, resume_keys: str) -> str:
    """Describe the outcome of an ended download, and the possible next step."""
    if item.state is TransferState.CANCELLED:
        return f"Download of {item.title} canceled. Partial files are kept; press {resume_keys} to resume."
    if item.state is TransferState.FAILED:
        why = f": {item.error.rstrip('.')}" if item.error else ""
        return f"Download of {item.title} incomplete{why}. Press {resume_keys} to resume."
    from api_client.transfers.records import FileState  # imported only after a download

    skipped = sum(file.state is FileState.SKIPPED for file in item.files)
    skipped_note = f", {count(skipped)} already there" if skipped else ""
    size = f"{bytes_iec(item.size_bytes)}, {counted(len(item.files), 'file')}{skipped_note}"
    where = str(item.files[0].path) if len(item.files) == 1 else item.folder
    return f"Downloaded {item.title} to {sanitize(where)}: {size}."


def time_left(item: Transfer) -> str:
    return duration(item.eta_s) if item.state is TransferState.ACTIVE and item.eta_s is not None else ""
