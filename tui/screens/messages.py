"""Requests from screens to the app. Screens never change anything on the server themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

from tui.screens.base import AppMessage
from tui.text.sanitize import sanitize_lines, sanitize_whole

if TYPE_CHECKING:  # imported later, so that Home's first picture appears sooner
    from api_client.models import TrainingJob
    from tui.analysis.export import ExportTable
    from tui.analysis.fleet.batches import ProjectDeletion, Verb
    from tui.analysis.fleet.snapshot import FleetSnapshot
    from tui.analysis.run.finding import HealthFinding
    from tui.analysis.run.snapshot import RunSnapshot
    from tui.analysis.transfers import DownloadRequest, Transfers


Handlers = Mapping[type[AppMessage], Callable[[Any], object]]
"""Handlers by message class. A handler that opens a screen after background work returns the worker."""


@dataclass
class BatchRequested(AppMessage):
    """Request to run an action on one or several jobs, after confirmation."""

    verb: Verb
    jobs: Sequence[TrainingJob]
    run: RunSnapshot | None = None
    """Newest snapshot of the run, if the batch is a single job."""
    changes_server = True


@dataclass
class DeleteProjectRequested(AppMessage):
    """Request to delete a project with its jobs, after confirmation."""

    project: ProjectDeletion
    changes_server = True


@dataclass
class BookmarkRequested(AppMessage):
    job: TrainingJob


@dataclass
class CopyRequested(AppMessage):
    """Request to copy ``text`` to the clipboard, sanitized; the toast says "Copied", then ``noun``.

    Unless ``keeps_line_breaks`` is True, line breaks are removed: a shell would run an id or a path that is
    pasted with a line break.
    """

    text: str
    noun: str
    keeps_line_breaks: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.text = sanitize_lines(self.text) if self.keeps_line_breaks else sanitize_whole(self.text)


@dataclass
class ResumeRequested(AppMessage):
    """Request to copy the command that resumes a job."""

    job: TrainingJob


def resume_obstacle(run: RunSnapshot) -> str:
    """Return why a job can't be resumed, as a sentence; empty if it can."""
    if not run.job.is_finished:
        return "The job is still running."
    return "" if run.checkpoints else "The job has no checkpoint to resume from."


@dataclass
class BrowserRequested(AppMessage):
    job: TrainingJob


@dataclass
class OpenProjectRequested(AppMessage):
    project_id: str


@dataclass
class DownloadRequested(AppMessage):
    """Request to download files, after asking for the folder."""

    request: DownloadRequest


@dataclass
class DownloadsChanged(AppMessage):
    downloads: Transfers

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, DownloadsChanged)


@dataclass
class CancelDownloadRequested(AppMessage):
    """Request to cancel a download; the data received so far is kept."""

    transfer_id: str


@dataclass
class RetryDownloadRequested(AppMessage):
    transfer_id: str


class ClearDownloadsRequested(AppMessage):
    pass


@dataclass
class RecordRequested(AppMessage):
    """Request to record a run to a file, or to stop recording it."""

    job: TrainingJob


@dataclass
class RunChecked(AppMessage):
    """Posted when the findings of a run were updated.

    ``all_checked`` is True once its log and its metrics have been checked, or could not be read. Findings
    that appear later are new.
    """

    run: RunSnapshot
    all_checked: bool = field(kw_only=True)


@dataclass
class FleetChecked(AppMessage):
    fleet: FleetSnapshot


@dataclass
class SnoozeRequested(AppMessage):
    """Request to snooze these findings of a job, or to end the snooze if all of them are snoozed."""

    job: TrainingJob
    findings: tuple[HealthFinding, ...]


@dataclass
class ExportRequested(AppMessage):
    """Request to save tables to a file; ``noun`` is what they are called in notices.

    ``file_name_parts`` are joined to the proposed file name.
    """

    noun: str
    tables: Sequence[ExportTable]
    file_name_parts: Sequence[str]


@dataclass
class FilesSaved(AppMessage):
    """Posted when files were written to a path from ``delivery_path``; browsers then download them."""

    paths: Sequence[Path]
