"""Messages by which screens ask the app to act. Screens never change anything on the server themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from textual.message import Message

from api_client.models import Checkpoint, TrainingJob
from tui.analysis.checkpoints.facts import CheckpointFacts
from tui.analysis.export import ExportTable
from tui.analysis.fleet.batches import Verb
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.transfers import DownloadRequest, Transfers
from tui.text.sanitize import sanitize, sanitize_lines


@dataclass
class OpenJobRequested(Message):
    """Request to show a job."""

    job: TrainingJob


@dataclass
class StopJobRequested(Message):
    """Request to stop a job, after confirmation."""

    job: TrainingJob


@dataclass
class RecreateJobRequested(Message):
    """Request to start a new job like this one, after confirmation."""

    job: TrainingJob


class BatchRequested(Message):
    """Request to run an action on several jobs, after confirmation."""

    def __init__(self, verb: Verb, jobs: Sequence[TrainingJob]) -> None:
        super().__init__()
        self.verb = verb
        self.jobs = tuple(jobs)


@dataclass
class BookmarkRequested(Message):
    """Request to toggle the bookmark of a job."""

    job: TrainingJob


class NewJobRequested(Message):
    """Request to submit a new job."""


@dataclass
class JobSubmitted(Message):
    """A job was created."""

    job: TrainingJob


@dataclass
class DeployRequested(Message):
    """Request to deploy checkpoints of a job, or of any job if none is given. ``run`` has its known state."""

    job: TrainingJob | None
    checkpoint: str | None = None
    run: RunSnapshot | None = None


class CopyRequested(Message):
    """Request to copy ``text`` to the clipboard, sanitized; ``what`` names it in the toast.

    Copies a single line unless ``lines`` is set: a line break in an id or a path would run in the shell
    it is pasted into.
    """

    def __init__(self, text: str, what: str, *, lines: bool = False) -> None:
        super().__init__()
        self.text = sanitize_lines(text) if lines else sanitize(text)
        self.what = what


@dataclass
class BrowserRequested(Message):
    """Request to open the job's page in the browser."""

    job: TrainingJob


@dataclass
class OpenCacheRequested(Message):
    """Request to show the cache of a project."""

    project_id: str
    name: str


@dataclass
class OpenProjectRequested(Message):
    """Request to show the jobs of a project on Home."""

    project_id: str


@dataclass
class OpenCheckpointRequested(Message):
    """Request to show the files of a checkpoint."""

    job: TrainingJob
    checkpoint: Checkpoint


@dataclass
class DownloadRequested(Message):
    """Request to download files, after asking for the folder."""

    wanted: DownloadRequest


@dataclass
class DownloadsChanged(Message):
    """The progress or the list of downloads has changed."""

    downloads: Transfers

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, DownloadsChanged)


@dataclass
class CancelDownloadRequested(Message):
    """Request to cancel a download; the data received so far is kept."""

    transfer_id: str


@dataclass
class RetryDownloadRequested(Message):
    """Request to resume a download."""

    transfer_id: str


class ClearDownloadsRequested(Message):
    """Request to remove finished downloads from the list."""


@dataclass
class RunChecked(Message):
    """Findings of a run; ``settled`` is True once enough is known to recognize new ones."""

    run: RunSnapshot
    settled: bool = field(kw_only=True)


@dataclass
class FleetChecked(Message):
    """Findings of all jobs."""

    fleet: FleetSnapshot


@dataclass
class SnoozeRequested(Message):
    """Request to snooze these findings of a job, or to end the snooze if all of them are snoozed."""

    job: TrainingJob
    findings: tuple[HealthFinding, ...]


@dataclass
class CompareCheckpointsRequested(Message):
    """Request to compare two checkpoints side by side."""

    job: TrainingJob
    left: CheckpointFacts
    right: CheckpointFacts


class CompareJobsRequested(Message):
    """Request to compare jobs side by side; the first is the baseline."""

    def __init__(self, jobs: Sequence[TrainingJob]) -> None:
        super().__init__()
        self.jobs = tuple(jobs)


class CapacityRequested(Message):
    """Request to show GPU capacity and the queue."""


class ExportRequested(Message):
    """Request to save tables to a file, after asking for the path.

    ``what`` names the tables, ``names`` form the file name.
    """

    def __init__(self, what: str, tables: Sequence[ExportTable], names: Sequence[str]) -> None:
        super().__init__()
        self.what = what
        self.tables = tuple(tables)
        self.names = tuple(names)


class FilesSaved(Message):
    """Files were written to the path from ``landing``; a browser receives them as downloads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self.paths = tuple(paths)
