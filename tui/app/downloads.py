"""Downloads in the app: ask for the folder, start, report the end; and files sent to a browser."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on, work
from textual.app import App
from textual.reactive import var

from api_client.files import why_not_written
from tui.actions import Scope
from tui.actions.keymap import key_for
from tui.analysis.transfers import DownloadRequest, Transfer, Transfers, TransferState, outcome_text
from tui.app.history import HistoryEntry
from tui.readers.session import Session
from tui.screens.base import AppScreen
from tui.screens.confirm import ConfirmScreen
from tui.screens.kinds import shows
from tui.screens.messages import (
    CancelDownloadRequested,
    ClearDownloadsRequested,
    DownloadRequested,
    DownloadsChanged,
    FilesSaved,
    RetryDownloadRequested,
)
from tui.screens.welcome import WelcomeChoice
from tui.system.saved_files import Outbox, delivered_as, packed, safe_name
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec
from tui.widgets.status_footer import DownloadBadge

if TYPE_CHECKING:
    from api_client.transfers import DownloadPlan
    from tui.feeds.downloads import DownloadsFeed


class FileDeliveryMixin(App[WelcomeChoice]):
    """App mixin that delivers saved files to the browser; in a terminal it does nothing."""

    outbox: Outbox
    _leaving: dict[str, Path]

    @on(FilesSaved)
    def _deliver_saved_files(self, message: FilesSaved) -> None:
        if not self.is_web:
            return
        if len(message.paths) == 1:
            self._deliver(message.paths[0])
        else:
            self.deliver_all(message.paths, message.paths[0].parent, Path(delivered_as(message.paths)).stem)

    def _deliver(self, path: Path) -> None:
        key = self.deliver_binary(path, save_filename=safe_name(path.name))
        if key is not None:
            self._leaving[key] = path

    @work(group="pack", exit_on_error=False)
    async def deliver_all(self, files: Sequence[Path], folder: Path, title: str) -> None:
        """Deliver files from ``folder`` to the browser; several files are packed into one archive."""
        archive = self.outbox.place(f"{title}.zip")
        try:
            path = await asyncio.to_thread(packed, files, folder, archive)
        except OSError as error:
            self.notify(f"Can't pack {title}: {why_not_written(error)}", severity="error")
            return
        if path is archive:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._deliver(path)

    @on(events.DeliveryComplete)
    def _delivered(self, event: events.DeliveryComplete) -> None:
        path = self._leaving.pop(event.key, None)
        if path is not None:
            self.outbox.forget(path)

    @on(events.DeliveryFailed)
    def _not_delivered(self, event: events.DeliveryFailed) -> None:
        path = self._leaving.pop(event.key, None)
        if path is not None:
            self.notify(f"Can't send {path.name} to the browser: {event.exception}", severity="error")
            self.outbox.forget(path)


_TONES = {TransferState.DONE: "information", TransferState.FAILED: "error"}


class DownloadsMixin(FileDeliveryMixin):
    """App mixin that asks for the folder of a download, starts it and reports its end.

    The app sets ``_session``.
    """

    downloads: var[Transfers] = var(Transfers())
    _session: Session | None
    _keys: Mapping[str, str] = {}
    """Changed keys by action id."""

    _downloads_feed: DownloadsFeed | None = None

    def push_app_screen(self, screen: AppScreen, place: HistoryEntry | None = None) -> None:
        """Push a screen after setting its shared state; add it to the history if ``place`` is given."""
        raise NotImplementedError

    def watch_downloads(self, downloads: Transfers) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, AppScreen) and screen.is_running:
                screen.downloads = downloads

    def _ensure_downloads_feed(self, session: Session) -> DownloadsFeed:
        if self._downloads_feed is None:
            from tui.feeds.downloads import DownloadsFeed

            feed = DownloadsFeed(
                session,
                publish=lambda found: self.post_message(DownloadsChanged(found)),
                on_end=self._report_end,
            )
            self._downloads_feed = feed
            self.run_worker(feed.run(), name="download feed", group="downloads", exit_on_error=False)
        return self._downloads_feed

    @on(DownloadsChanged)
    def _take_downloads(self, message: DownloadsChanged) -> None:
        self.downloads = message.downloads

    def _report_end(self, item: Transfer) -> None:
        severity = {TransferState.DONE: "information", TransferState.FAILED: "error"}.get(
            item.state, "warning"
        )
        if self.is_web and item.state is TransferState.DONE:
            files = [file.path for file in item.files]
            self.notify(f"{item.title}: on its way to your browser.")
            self.deliver_all(files, Path(item.folder), item.title)
            return
        self.notify(outcome_text(item), severity=severity, timeout=10)  # type: ignore[arg-type]

    # Requests from screens

    @on(DownloadRequested)
    def _ask_where(self, message: DownloadRequested) -> None:
        if self._session is not None:
            self._download(self._session, message.wanted)

    @work(group="ask about a download")
    async def _download(self, session: Session, wanted: DownloadRequest) -> None:
        if self.is_web:  # the folder would be on the server, so completed files go to the browser
            feed = self._ensure_downloads_feed(session)
            await self._plan_and_start(feed, feed.begin(wanted, self.outbox.folder()))
            return
        key = key_for("app.show_downloads", self._keys)
        size = f"{bytes_iec(wanted.size_bytes)}. " if wanted.size_bytes else ""
        about = (
            f"{size}Runs in the background; {key} shows progress. An interrupted download resumes"
            " if you download to the same folder again."
        )
        from tui.feeds.downloads import proposed_folder
        from tui.screens.downloads import DownloadFolderScreen

        folder = await self.push_screen_wait(
            DownloadFolderScreen(wanted.title, about, proposed_folder(wanted))
        )
        if folder is None:
            return
        feed = self._ensure_downloads_feed(session)
        await self._plan_and_start(feed, feed.begin(wanted, folder))

    async def _plan_and_start(self, feed: DownloadsFeed, transfer_id: str) -> None:
        """Ask about conflicts, then queue the download."""
        from api_client.transfers import Existing
        from tui.screens.downloads import FileConflictScreen

        plan = await feed.plan(transfer_id)
        if plan is None:
            return
        if not plan.files:
            feed.fail(transfer_id, "Nothing to download." + _refusals(plan))
            return
        if not plan.has_room:
            feed.fail(
                transfer_id,
                f"Not enough room: {bytes_iec(plan.needed_bytes)} needed, {bytes_iec(plan.free_bytes)} free.",
            )
            return
        existing: Existing | None = None
        if plan.conflicts and not feed.answered(transfer_id):
            names = [str(_below(file.path, plan.folder)) for file in plan.conflicts]
            choice = await self.push_screen_wait(FileConflictScreen(str(plan.folder), names))
            if choice is None:
                feed.drop(transfer_id)
                return
            existing = Existing(choice)
        feed.start(transfer_id, existing)

    @on(CancelDownloadRequested)
    def _cancel_download(self, message: CancelDownloadRequested) -> None:
        if self._downloads_feed is not None:
            self._downloads_feed.cancel(message.transfer_id)

    @on(RetryDownloadRequested)
    def _retry_download(self, message: RetryDownloadRequested) -> None:
        feed = self._downloads_feed
        if feed is not None and feed.can_retry(message.transfer_id):
            self.run_worker(
                self._plan_and_start(feed, message.transfer_id),
                name="download plan",
                group="ask about a download",
                exit_on_error=False,
            )

    @on(ClearDownloadsRequested)
    def _clear_downloads(self) -> None:
        if self._downloads_feed is not None:
            self._downloads_feed.clear()

    @on(DownloadBadge.Pressed)
    def _badge_pressed(self) -> None:
        self.action_show_downloads()

    # Actions

    def action_show_downloads(self) -> None:
        """Show the list of downloads, or close it if it is shown."""
        if shows(self.screen, Scope.DOWNLOADS):
            self.pop_screen()
        elif isinstance(self.screen, AppScreen):
            self._open_downloads()

    def _open_downloads(self) -> None:
        from tui.screens.downloads import DownloadsScreen

        self.push_app_screen(DownloadsScreen(), HistoryEntry(("downloads",), self._open_downloads))

    async def action_quit(self) -> None:
        """Quit; ask first if downloads are running."""
        going = self.downloads.under_way
        if not going:
            self.exit()
            return

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                self.exit()

        what = "a download is" if len(going) == 1 else f"{len(going)} downloads are"
        question = ConfirmScreen(
            f"Quit while {what} running?",
            "Partial files are kept. Download to the same folder again to resume.",
            "Quit",
            "Stay",
        )
        self.push_screen(question, answered)


def _below(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _refusals(plan: DownloadPlan) -> str:
    if not plan.refused:
        return ""
    first = plan.refused[0]
    reason = f"{sanitize(first.name)} ({sanitize(first.reason)})"
    return f" {len(plan.refused):,} refused because of their names, first: {reason}"
