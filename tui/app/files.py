"""Files that the app saves: exports, screenshots, downloads and recordings.

In a browser session, each file is sent to the browser once it is complete. Downloads and recordings run in
the background.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from textual.worker import Worker

from api_client.errors import RequestError
from api_client.files import why_not_written, write_private
from tui.analysis.transfers import DownloadRequest, Transfer, TransferState, outcome_text
from tui.app.service import BaseApp, Service
from tui.screens import messages
from tui.system.saved_files import delivery_path, download_name, pack_files, proposed_path, safe_name
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted

if TYPE_CHECKING:
    from api_client.models import TrainingJob
    from api_client.transfers import DownloadPlan, Existing
    from tui.feeds.downloads import DownloadsFeed
    from tui.readers.recorder import Recorder
    from tui.readers.session import Session


class SavedFiles(Service):
    """Saves tables and screenshots; in a browser session, sends saved files to the browser."""

    @property
    def handlers(self) -> messages.Handlers:
        return {messages.ExportRequested: self.export, messages.FilesSaved: self.deliver}

    def export(self, message: messages.ExportRequested) -> None:
        if not any(table.rows for table in message.tables):
            self._app.notify("Nothing to export yet.")
            return
        from tui.screens.dialogs import ExportScreen

        def report_saved(files: tuple[Path, ...] | None) -> None:
            if files:
                paths = ", ".join(str(path.absolute()) for path in files)
                destination = f"as {download_name(files)}" if self._app.is_web else f"to {paths}"
                self._app.notify(f"Saved {message.noun} {destination}.")
                self.deliver(messages.FilesSaved(files))

        screen = ExportScreen(message.noun, message.tables, proposed_path(*message.file_name_parts))
        self._app.push_screen(screen, report_saved)

    async def save_screenshot(self) -> None:
        """Save the screen as SVG in the user's downloads folder, else in the working directory."""
        # Servers often have no downloads folder.
        downloads_folder = platformdirs.user_downloads_path()
        name = f"{self._app.title} {datetime.now(UTC).astimezone():%Y-%m-%d %H.%M.%S}.svg"
        path = delivery_path(
            self._app, (downloads_folder if downloads_folder.is_dir() else Path.cwd()) / name
        )
        try:
            await asyncio.to_thread(write_private, path, self._app.export_screenshot().encode())
        except OSError as error:
            self._app.notify(f"Can't write {path}: {why_not_written(error)}", severity="error")
            return
        destination = f"as {path.name}" if self._app.is_web else f"to {path}"
        self._app.notify(f"Screenshot saved {destination}.")
        self.deliver(messages.FilesSaved((path,)))

    def deliver(self, message: messages.FilesSaved) -> None:
        """In a browser session, send the saved files to the browser."""
        if not self._app.is_web:
            return
        if len(message.paths) == 1:
            self._deliver(message.paths[0])
        else:
            folder, title = message.paths[0].parent, Path(download_name(message.paths)).stem
            self.deliver_all(message.paths, folder, title)

    def deliver_all(self, files: Sequence[Path], folder: Path, title: str) -> None:
        """Send files below ``folder`` to the browser; several files are packed into one archive."""
        self._run(partial(self._pack_and_deliver, files, folder, title), "archive", "pack")

    async def _pack_and_deliver(self, files: Sequence[Path], folder: Path, title: str) -> None:
        archive = self._app.outbox.path_for(f"{title}.zip")
        try:
            path = await asyncio.to_thread(pack_files, files, folder, archive)
        except OSError as error:
            self._app.notify(f"Can't pack {title}: {why_not_written(error)}", severity="error")
            return
        if path is archive:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._deliver(path)

    def _deliver(self, path: Path) -> None:
        self._app.deliver_binary(path, save_filename=safe_name(path.name))


class DownloadStarter(Service):
    """Asks for the target folder of a download, starts the download and reports its end."""

    def __init__(self, app: BaseApp, files: SavedFiles) -> None:
        super().__init__(app)
        self._files = files
        self._feed: DownloadsFeed | None = None

    @property
    def handlers(self) -> messages.Handlers:
        return {
            messages.DownloadRequested: self.start_download,
            messages.CancelDownloadRequested: self.cancel,
            messages.RetryDownloadRequested: self.retry,
            messages.ClearDownloadsRequested: self.clear,
        }

    def _feed_for(self, session: Session) -> DownloadsFeed:
        if self._feed is None:
            from tui.feeds.downloads import DownloadsFeed

            self._feed = DownloadsFeed(
                session,
                publish=lambda transfers: self._app.post_message(messages.DownloadsChanged(transfers)),
                on_end=self._report_end,
            )
        return self._feed

    def _report_end(self, transfer: Transfer) -> None:
        if self._app.is_web and transfer.state is TransferState.DONE:
            self._app.notify(f"{transfer.title}: on its way to your browser.")
            paths = [file.path for file in transfer.files]
            self._files.deliver_all(paths, Path(transfer.folder), transfer.title)
            return
        from tui.screens.downloads import DownloadsScreen

        if transfer.state is TransferState.CANCELLED and isinstance(self._app.screen, DownloadsScreen):
            return  # the list on this screen shows that
        severities = {TransferState.DONE: "information", TransferState.FAILED: "error"}
        action_ids = ("app.show_downloads", "downloads.retry_download")
        text = outcome_text(transfer, ", then ".join(map(self._app.key_for, action_ids)))
        severity = severities.get(transfer.state, "warning")
        self._app.notify(text, severity=severity, timeout=10)  # type: ignore[arg-type]

    # Requests from screens

    def start_download(self, message: messages.DownloadRequested) -> Worker[None] | None:
        session = self._app.session
        if session is None:
            return None
        worker = self._download(partial(self._ask_and_download, session, message.request))
        return None if self._app.is_web else worker  # in a browser, no dialog asks for a folder

    def _download(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Worker[None]:
        return self._run(work, "download", "downloads")

    async def _ask_and_download(self, session: Session, request: DownloadRequest) -> None:
        if self._app.is_web:  # the folder would be on the server, so completed files go to the browser
            feed = self._feed_for(session)
            await feed.download(feed.begin(request, self._app.outbox.folder()), self._resolve_conflicts)
            return
        downloads_key = self._app.key_for("app.show_downloads")
        size_text = f"{bytes_iec(request.size_bytes)}. " if request.size_bytes else ""
        explanation = (
            f"{size_text}Runs in the background; {downloads_key} shows progress. An interrupted download"
            " resumes if you download to the same folder again."
        )
        from tui.feeds.downloads import proposed_folder
        from tui.screens.dialogs import DownloadFolderScreen

        dialog = DownloadFolderScreen(
            request.title,
            explanation,
            proposed_folder(request),
            refusal_of=partial(_no_room_problem, request),
        )
        folder = await self._app.push_screen_wait(dialog)
        if folder is not None:
            feed = self._feed_for(session)
            await feed.download(feed.begin(request, folder), self._resolve_conflicts)

    async def _resolve_conflicts(
        self, plan: DownloadPlan, earlier_answer: Existing | None
    ) -> Existing | None:
        """Return what to do with existing files whose content differs; None to cancel the download.

        Asks the user if there are such files, unless an earlier attempt has an answer (``earlier_answer``).
        Raises DownloadError if there is nothing to download or not enough room.
        """
        from api_client.transfers import DownloadError, Existing
        from tui.screens.dialogs import FileConflictScreen

        if not plan.files:
            raise DownloadError("Nothing to download." + _refusals_text(plan))
        if not plan.has_room:
            raise DownloadError(_no_room_text(plan.needed_bytes, plan.free_bytes))
        if earlier_answer is not None or not plan.conflicts:
            return earlier_answer or Existing.SKIP  # SKIP: files created meanwhile must not be overwritten
        relative_paths = [str(file.path.relative_to(plan.folder)) for file in plan.conflicts]
        choice = await self._app.push_screen_wait(FileConflictScreen(str(plan.folder), relative_paths))
        return None if choice is None else Existing(choice)

    def cancel(self, message: messages.CancelDownloadRequested) -> None:
        if self._feed is not None:
            self._feed.cancel(message.transfer_id)

    def retry(self, message: messages.RetryDownloadRequested) -> None:
        if self._feed is not None and self._feed.can_retry(message.transfer_id):
            self._download(partial(self._feed.download, message.transfer_id, self._resolve_conflicts))

    def clear(self, _message: messages.ClearDownloadsRequested) -> None:
        if self._feed is not None:
            self._feed.clear()


def _no_room_problem(request: DownloadRequest, folder: Path) -> str:
    """Return an error text if a new folder would lack space.

    An existing folder is checked later, when the files that it already has are known.
    """
    from api_client.transfers.plans import free_bytes

    available_bytes, required_bytes = free_bytes(folder), request.size_bytes or 0
    return (
        ""
        if folder.exists() or available_bytes is None or required_bytes <= available_bytes
        else _no_room_text(required_bytes, available_bytes)
    )


def _no_room_text(needed_bytes: int, free_bytes: int | None) -> str:
    return f"Not enough room: {bytes_iec(needed_bytes)} needed, {bytes_iec(free_bytes)} free."


def _refusals_text(plan: DownloadPlan) -> str:
    if not plan.refused:
        return ""
    refusal = plan.refused[0]
    reason = f"{sanitize(refusal.name)} ({sanitize(refusal.reason)})"
    return f" {counted(len(plan.refused), 'refused name')}, first: {reason}"


class Recorders(Service):
    """Records runs to files; a second request for the same job stops the recording."""

    def __init__(self, app: BaseApp) -> None:
        super().__init__(app)
        self._workers: dict[str, Worker[None]] = {}
        """The workers that record jobs, by job ID."""

    @property
    def handlers(self) -> messages.Handlers:
        return {messages.RecordRequested: self.toggle_recording}

    def toggle_recording(self, message: messages.RecordRequested) -> None:
        job, session = message.job, self._app.session
        running_worker = self._workers.pop(job.id, None)
        if running_worker is not None and not running_worker.is_finished:
            running_worker.cancel()
            self._app.notify("Recording stopped; record again to continue the file.")
        elif session is not None and session.connection.recorded is not None:
            self._app.notify("This is already a recording.")
        elif session is not None:
            self._workers[job.id] = self._run(partial(self._record, session, job), "recording", "record")

    async def _record(self, session: Session, job: TrainingJob) -> None:
        from api_client.recordings.archive import SUFFIX, RecordingError
        from tui.readers.recorder import Recorder

        path = delivery_path(self._app, Path.cwd() / f"{safe_name(job.id)}{SUFFIX}")

        def report_begin() -> None:
            end_text = "" if job.is_finished else " until the job ends"
            self._app.notify(f"Recording to {path.name}{end_text}; record again to stop.")
            self._app.recorded_job_ids |= {job.id}

        recorder = Recorder(session.client, job, path, on_begin=report_begin)
        try:
            await recorder.run(follow=not job.is_finished)
        except (RequestError, RecordingError) as error:
            self._report_failure(str(error))
        except asyncio.CancelledError:  # the user stopped it: send the partial file to a browser
            if path.exists():
                self._app.post_message(messages.FilesSaved((path,)))
            raise
        except OSError as error:
            self._report_failure(f"{path}: {why_not_written(error)}")
        else:
            self._report_success(recorder)
        finally:
            self._app.recorded_job_ids -= {job.id}

    def _report_failure(self, reason: str) -> None:
        self._app.notify(sanitize(reason), title="Can't record", severity="error")

    def _report_success(self, recorder: Recorder) -> None:
        path = recorder.path
        size_text = bytes_iec(path.stat().st_size)
        for part, problem in recorder.problems.items():
            self._app.notify(f"The {part} could not be recorded: {sanitize(problem)}", severity="warning")
        self._app.notify(f"Recorded {counted(recorder.line_count, 'new line')} to {path} ({size_text}).")
        self._app.post_message(messages.FilesSaved((path,)))
