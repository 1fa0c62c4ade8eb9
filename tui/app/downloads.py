"""Downloads in the app: ask for the folder, start, report the end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker

from tui.actions.keymap import key_for
from tui.analysis.transfers import DownloadRequest, Transfer, TransferState, outcome_text
from tui.app.files import SavedFiles
from tui.readers.session import Session
from tui.screens import messages
from tui.screens.dialogs import DownloadFolderScreen, FileConflictScreen
from tui.screens.downloads import DownloadsScreen
from tui.system.saved_files import Outbox
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted
from tui.widgets.background import run_in_background

if TYPE_CHECKING:
    from api_client.transfers import DownloadPlan, Existing
    from tui.feeds.downloads import DownloadsFeed

_SEVERITIES = {TransferState.DONE: "information", TransferState.FAILED: "error"}


class DownloadStarter:
    """Asks for the folder of a download, starts it and reports its end; needs a session to start any."""

    def __init__(
        self,
        app: App[Any],
        session: Session | None,
        keys: Mapping[str, str],
        outbox: Outbox,
        files: SavedFiles,
    ) -> None:
        self._app = app
        self._session = session
        self._keys = keys
        self._outbox = outbox
        self._files = files
        self._feed: DownloadsFeed | None = None

    @property
    def handlers(self) -> messages.Handlers:
        return {
            messages.DownloadRequested: self.ask,
            messages.CancelDownloadRequested: self.cancel,
            messages.RetryDownloadRequested: self.retry,
            messages.ClearDownloadsRequested: self.clear,
        }

    def _running_feed(self, session: Session) -> DownloadsFeed:
        if self._feed is None:
            from tui.feeds.downloads import DownloadsFeed

            self._feed = DownloadsFeed(
                session,
                publish=lambda found: self._app.post_message(messages.DownloadsChanged(found)),
                on_end=self._report_end,
            )
        return self._feed

    def _report_end(self, item: Transfer) -> None:
        if self._app.is_web and item.state is TransferState.DONE:
            self._app.notify(f"{item.title}: on its way to your browser.")
            self._files.deliver_all([file.path for file in item.files], Path(item.folder), item.title)
            return
        if item.state is TransferState.CANCELLED and isinstance(self._app.screen, DownloadsScreen):
            return  # the list shows it
        severity = _SEVERITIES.get(item.state, "warning")
        actions = ("app.show_downloads", "downloads.retry_download")
        text = outcome_text(item, ", then ".join(key_for(action, self._keys) for action in actions))
        self._app.notify(text, severity=severity, timeout=10)  # type: ignore[arg-type]

    # Requests from screens

    def ask(self, message: messages.DownloadRequested) -> Worker[None] | None:
        if self._session is None:
            return None
        asking = self._run(partial(self._ask, self._session, message.wanted))
        return None if self._app.is_web else asking  # a browser is not asked for a folder

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Worker[None]:
        return run_in_background(self._app, work, "download", group="downloads")

    async def _ask(self, session: Session, wanted: DownloadRequest) -> None:
        if self._app.is_web:  # the folder would be on the server, so completed files go to the browser
            feed = self._running_feed(session)
            await feed.download(feed.begin(wanted, self._outbox.folder()), self._check)
            return
        key = key_for("app.show_downloads", self._keys)
        size = f"{bytes_iec(wanted.size_bytes)}. " if wanted.size_bytes else ""
        about = (
            f"{size}Runs in the background; {key} shows progress. An interrupted download resumes"
            " if you download to the same folder again."
        )
        from tui.feeds.downloads import proposed_folder

        screen = DownloadFolderScreen(
            wanted.title, about, proposed_folder(wanted), refuse=partial(_why_no_room, wanted)
        )
        folder = await self._app.push_screen_wait(screen)
        if folder is not None:
            feed = self._running_feed(session)
            await feed.download(feed.begin(wanted, folder), self._check)

    async def _check(self, plan: DownloadPlan, before: Existing | None) -> Existing | None:
        """Ask what to do with existing files of other content, unless it was decided ``before``."""
        from api_client.transfers import DownloadError, Existing

        if not plan.files:
            raise DownloadError("Nothing to download." + _refusals(plan))
        if not plan.has_room:
            raise DownloadError(_no_room(plan.needed_bytes, plan.free_bytes))
        if before is not None or not plan.conflicts:
            return before or Existing.SKIP  # files created in the meantime must not be overwritten
        names = [str(_below(file.path, plan.folder)) for file in plan.conflicts]
        choice = await self._app.push_screen_wait(FileConflictScreen(str(plan.folder), names))
        return None if choice is None else Existing(choice)

    def cancel(self, message: messages.CancelDownloadRequested) -> None:
        if self._feed is not None:
            self._feed.cancel(message.transfer_id)

    def retry(self, message: messages.RetryDownloadRequested) -> None:
        if self._feed is not None and self._feed.can_retry(message.transfer_id):
            self._run(partial(self._feed.download, message.transfer_id, self._check))

    def clear(self, _message: messages.ClearDownloadsRequested) -> None:
        if self._feed is not None:
            self._feed.clear()


def _why_no_room(wanted: DownloadRequest, folder: Path) -> str:
    """Check a new folder; how much of the download an existing one already holds is known to the plan."""
    from api_client.transfers.plans import free_bytes

    free, needed = free_bytes(folder), wanted.size_bytes or 0
    return "" if folder.exists() or free is None or needed <= free else _no_room(needed, free)


def _no_room(needed_bytes: int, free_bytes: int | None) -> str:
    return f"Not enough room: {bytes_iec(needed_bytes)} needed, {bytes_iec(free_bytes)} free."


def _below(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _refusals(plan: DownloadPlan) -> str:
    if not plan.refused:
        return ""
    first = plan.refused[0]
    reason = f"{sanitize(first.name)} ({sanitize(first.reason)})"
    return f" {counted(len(plan.refused), 'refused name')}, first: {reason}"
