"""What screens ask of the app. Screens never act on the server themselves."""

from __future__ import annotations

from textual.message import Message

from api_client.models import TrainingJob


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
