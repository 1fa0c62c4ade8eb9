"""The state of all downloads, as shown in the footer and in the list of downloads."""

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
"""Displayed instead of a speed while no data arrives."""


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """A user's request to download data of a job: its source archive, or checkpoints."""

    job: TrainingJob
    checkpoints: tuple[str, ...] = ()
    files: tuple[CheckpointFile, ...] = ()
    """Download only these files of the checkpoints; all files if empty."""
    by_rank: bool | None = None
    """True if nodes other than the first have files of the job; None until known."""
    archive: bool = False
    """True to download the archive of the source code."""
    size_bytes: int | None = None
    """None if the size is not known in advance."""

    @property
    def content(self) -> tuple[object, ...]:
        """Identity of the download: equal for two requests of the same data."""
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
    """The state of a download.

    ``speed`` is in bytes per second, averaged over the last seconds; ``eta_s`` is None while unknown;
    ``stalled_s`` is the time since data arrived last, 0 while that is short. ``note`` reports a wait, or the
    renewal of a URL.
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
        return tuple(transfer for transfer in self.items if transfer.is_running_or_queued)

    def indicator(self) -> str:
        """Return the footer text, ``↓ 2 files 43% 112 MiB/s``; empty if no download is running or queued."""
        active = self.under_way
        if not active:
            return ""
        files = [file for transfer in active for file in transfer.files]
        file_count = sum(not file.state.is_final for file in files)
        if not files:
            return "↓ listing"
        done_bytes = sum(transfer.done_bytes for transfer in active)
        size_bytes = sum(transfer.size_bytes or 0 for transfer in active)
        parts = [f"↓ {counted(file_count, 'file')}"]
        if size_bytes:
            parts.append(percent(min(1.0, done_bytes / size_bytes)))
        speed = sum(transfer.speed or 0.0 for transfer in active)
        if any(transfer.stalled_s for transfer in active):
            parts.append(STALLED)
        elif speed:
            parts.append(speed_text(speed))
        return " ".join(parts)


def speed_text(bytes_per_s: float | None) -> str:
    """Return ``112 MiB/s``; a dash while unknown."""
    return f"{bytes_iec(bytes_per_s)}/s" if bytes_per_s else "–"


def outcome_text(transfer: Transfer, resume_keys: str) -> str:
    """Describe the outcome of an ended download, and the possible next step."""
    if transfer.state is TransferState.CANCELLED:
        return (
            f"Download of {transfer.title} canceled. Partial files are kept; press {resume_keys} to resume."
        )
    if transfer.state is TransferState.FAILED:
        reason = f": {transfer.error.rstrip('.')}" if transfer.error else ""
        return f"Download of {transfer.title} incomplete{reason}. Press {resume_keys} to resume."
    from api_client.transfers.records import FileState  # imported only after a download

    skipped = sum(file.state is FileState.SKIPPED for file in transfer.files)
    skipped_note = f", {count(skipped)} already there" if skipped else ""
    size_text = f"{bytes_iec(transfer.size_bytes)}, {counted(len(transfer.files), 'file')}{skipped_note}"
    destination = str(transfer.files[0].path) if len(transfer.files) == 1 else transfer.folder
    return f"Downloaded {transfer.title} to {sanitize(destination)}: {size_text}."


def time_left(transfer: Transfer) -> str:
    return (
        duration(transfer.eta_s)
        if transfer.state is TransferState.ACTIVE and transfer.eta_s is not None
        else ""
    )
