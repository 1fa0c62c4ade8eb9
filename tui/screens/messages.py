"""What screens ask of the app. Screens never act on the server themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.message import Message

from api_client.models import Checkpoint, TrainingJob
from tui.analysis.checkpoints.facts import CheckpointFacts
from tui.analysis.export import ExportTable
from tui.analysis.fleet.batches import Verb
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.analysis.run.finding import Finding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.transfers import Transfers, Wanted
from tui.text.sanitize import inert, sanitize_lines


class OpenJobRequested(Message):
    """Show this job."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class StopJobRequested(Message):
    """Stop this job, after asking."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class RecreateJobRequested(Message):
    """Start a new job like this one, after asking."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class BatchRequested(Message):
    """Do this to these jobs, after asking."""

    def __init__(self, verb: Verb, jobs: Sequence[TrainingJob]) -> None:
        super().__init__()
        self.verb = verb
        self.jobs = tuple(jobs)


class BookmarkRequested(Message):
    """Set a bookmark on this job, or take it away."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class NewJobRequested(Message):
    """Submit a new job."""


class JobSubmitted(Message):
    """The job was just created."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class DeployRequested(Message):
    """Deploy checkpoints of this job; of any, if none is named. ``run`` is what is known of the job."""

    def __init__(
        self, job: TrainingJob | None, checkpoint: str | None = None, run: RunSnapshot | None = None
    ) -> None:
        super().__init__()
        self.job = job
        self.checkpoint = checkpoint
        self.run = run


class CopyRequested(Message):
    """Put ``text`` on the clipboard, sanitized; ``what`` names it in the toast.

    One line unless ``lines``: a line end in an id or a path would run in the shell that it is pasted into.
    """

    def __init__(self, text: str, what: str, *, lines: bool = False) -> None:
        super().__init__()
        self.text = sanitize_lines(text) if lines else inert(text)
        self.what = what


class BrowserRequested(Message):
    """Open the job's page in the browser."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class OpenCacheRequested(Message):
    """Show the cache of this project."""

    def __init__(self, project_id: str, name: str) -> None:
        super().__init__()
        self.project_id = project_id
        self.name = name


class OpenProjectRequested(Message):
    """Show the jobs of this project, on Home."""

    def __init__(self, project_id: str) -> None:
        super().__init__()
        self.project_id = project_id


class OpenCheckpointRequested(Message):
    """Show the files of this checkpoint."""

    def __init__(self, job: TrainingJob, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.job = job
        self.checkpoint = checkpoint


class DownloadRequested(Message):
    """Download this, after asking where to."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__()
        self.wanted = wanted


class DownloadsChanged(Message):
    """The downloads have moved on."""

    def __init__(self, downloads: Transfers) -> None:
        super().__init__()
        self.downloads = downloads

    def can_replace(self, message: Message) -> bool:
        """Only the newest counts."""
        return isinstance(message, DownloadsChanged)


class CancelDownloadRequested(Message):
    """Stop the download of this id; what has arrived is kept."""

    def __init__(self, transfer_id: str) -> None:
        super().__init__()
        self.transfer_id = transfer_id


class RetryDownloadRequested(Message):
    """Go on with the download of this id."""

    def __init__(self, transfer_id: str) -> None:
        super().__init__()
        self.transfer_id = transfer_id


class ClearDownloadsRequested(Message):
    """Forget the downloads that have ended."""


class RunJudged(Message):
    """What was found of this run; ``settled`` once enough of it is known to tell what is new."""

    def __init__(self, run: RunSnapshot, *, settled: bool) -> None:
        super().__init__()
        self.run = run
        self.settled = settled


class FleetJudged(Message):
    """What was found of all jobs."""

    def __init__(self, fleet: FleetSnapshot) -> None:
        super().__init__()
        self.fleet = fleet


class SnoozeRequested(Message):
    """Be silent about these findings of a job for a while; if all of them are snoozed, no longer."""

    def __init__(self, job: TrainingJob, findings: tuple[Finding, ...]) -> None:
        super().__init__()
        self.job = job
        self.findings = findings


class CompareCheckpointsRequested(Message):
    """Show these two checkpoints side by side."""

    def __init__(self, job: TrainingJob, left: CheckpointFacts, right: CheckpointFacts) -> None:
        super().__init__()
        self.job = job
        self.left = left
        self.right = right


class CompareJobsRequested(Message):
    """Show these jobs side by side, the first being the one to compare with."""

    def __init__(self, jobs: Sequence[TrainingJob]) -> None:
        super().__init__()
        self.jobs = tuple(jobs)


class CapacityRequested(Message):
    """Show how many GPUs there are, and who waits for them."""


class ExportRequested(Message):
    """Save tables to a file, after asking where; ``what`` names them, ``names`` make the file's name."""

    def __init__(self, what: str, tables: Sequence[ExportTable], names: Sequence[str]) -> None:
        super().__init__()
        self.what = what
        self.tables = tuple(tables)
        self.names = tuple(names)


class FilesSaved(Message):
    """These files were written where ``landing`` said; a browser gets them as downloads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self.paths = tuple(paths)
