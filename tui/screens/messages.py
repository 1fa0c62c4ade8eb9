"""Messages by which screens ask the app to act. Screens never change anything on the server themselves."""

from __future__ import annotations

from collections.abc import Sequence
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


class OpenJobRequested(Message):
    """Request to show a job."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class StopJobRequested(Message):
    """Request to stop a job, after confirmation."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class RecreateJobRequested(Message):
    """Request to start a new job like this one, after confirmation."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class BatchRequested(Message):
    """Request to run an action on several jobs, after confirmation."""

    def __init__(self, verb: Verb, jobs: Sequence[TrainingJob]) -> None:
        super().__init__()
        self.verb = verb
        self.jobs = tuple(jobs)


class BookmarkRequested(Message):
    """Request to toggle the bookmark of a job."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class NewJobRequested(Message):
    """Request to submit a new job."""


class JobSubmitted(Message):
    """A job was created."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class DeployRequested(Message):
    """Request to deploy checkpoints of a job, or of any job if none is given. ``run`` has its known state."""

    def __init__(
        self, job: TrainingJob | None, checkpoint: str | None = None, run: RunSnapshot | None = None
    ) -> None:
        super().__init__()
        self.job = job
        self.checkpoint = checkpoint
        self.run = run


class CopyRequested(Message):
    """Request to copy ``text`` to the clipboard, sanitized; ``what`` names it in the toast.

    Copies a single line unless ``lines`` is set: a line break in an id or a path would run in the shell
    it is pasted into.
    """

    def __init__(self, text: str, what: str, *, lines: bool = False) -> None:
        super().__init__()
        self.text = sanitize_lines(text) if lines else sanitize(text)
        self.what = what


class BrowserRequested(Message):
    """Request to open the job's page in the browser."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class OpenCacheRequested(Message):
    """Request to show the cache of a project."""

    def __init__(self, project_id: str, name: str) -> None:
        super().__init__()
        self.project_id = project_id
        self.name = name


class OpenProjectRequested(Message):
    """Request to show the jobs of a project on Home."""

    def __init__(self, project_id: str) -> None:
        super().__init__()
        self.project_id = project_id


class OpenCheckpointRequested(Message):
    """Request to show the files of a checkpoint."""

    def __init__(self, job: TrainingJob, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.job = job
        self.checkpoint = checkpoint


class DownloadRequested(Message):
    """Request to download files, after asking for the folder."""

    def __init__(self, wanted: DownloadRequest) -> None:
        super().__init__()
        self.wanted = wanted


class DownloadsChanged(Message):
    """The progress or the list of downloads has changed."""

    def __init__(self, downloads: Transfers) -> None:
        super().__init__()
        self.downloads = downloads

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, DownloadsChanged)


class CancelDownloadRequested(Message):
    """Request to cancel a download; the data received so far is kept."""

    def __init__(self, transfer_id: str) -> None:
        super().__init__()
        self.transfer_id = transfer_id


class RetryDownloadRequested(Message):
    """Request to resume a download."""

    def __init__(self, transfer_id: str) -> None:
        super().__init__()
        self.transfer_id = transfer_id


class ClearDownloadsRequested(Message):
    """Request to remove finished downloads from the list."""


class RunChecked(Message):
    """Findings of a run; ``settled`` is True once enough is known to recognize new ones."""

    def __init__(self, run: RunSnapshot, *, settled: bool) -> None:
        super().__init__()
        self.run = run
        self.settled = settled


class FleetChecked(Message):
    """Findings of all jobs."""

    def __init__(self, fleet: FleetSnapshot) -> None:
        super().__init__()
        self.fleet = fleet


class SnoozeRequested(Message):
    """Request to snooze these findings of a job, or to end the snooze if all of them are snoozed."""

    def __init__(self, job: TrainingJob, findings: tuple[HealthFinding, ...]) -> None:
        super().__init__()
        self.job = job
        self.findings = findings


class CompareCheckpointsRequested(Message):
    """Request to compare two checkpoints side by side."""

    def __init__(self, job: TrainingJob, left: CheckpointFacts, right: CheckpointFacts) -> None:
        super().__init__()
        self.job = job
        self.left = left
        self.right = right


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
