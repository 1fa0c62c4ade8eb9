"""What screens ask of the app. Screens never act on the server themselves."""

from __future__ import annotations

from textual.message import Message

from api_client.models import Checkpoint, TrainingJob
from tui.insight.checkpoint_facts import CheckpointFacts
from tui.insight.transfers import Transfers, Wanted


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


class NewJobRequested(Message):
    """Submit a new job."""


class JobSubmitted(Message):
    """The job was just created."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.job = job


class DeployRequested(Message):
    """Deploy checkpoints of this job; of any, if none is named."""

    def __init__(self, job: TrainingJob | None, checkpoint: str | None = None) -> None:
        super().__init__()
        self.job = job
        self.checkpoint = checkpoint


class CopyRequested(Message):
    """Put ``text`` on the clipboard; ``what`` names it in the toast."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text = text
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


class CompareCheckpointsRequested(Message):
    """Show these two checkpoints side by side."""

    def __init__(self, job: TrainingJob, left: CheckpointFacts, right: CheckpointFacts) -> None:
        super().__init__()
        self.job = job
        self.left = left
        self.right = right
