"""All downloads of this session: how far each is, its files, and what to do about those that stopped."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from tui.actions import Scope
from tui.insight.names_apart import middle
from tui.insight.text import inert
from tui.insight.transfers import RESUMABLE, Transfer, Transfers, files_words
from tui.insight.units import bytes_iec, duration
from tui.keymap import bindings_of
from tui.messages import (
    CancelDownloadRequested,
    ClearDownloadsRequested,
    CopyRequested,
    RetryDownloadRequested,
)
from tui.screens.base import AppScreen
from tui.screens.downloads.columns import FILE_COLUMNS, TRANSFER_COLUMNS
from tui.widgets.line import FactLine
from tui.widgets.notice import ConnectionNotice
from tui.widgets.row_table import RowTable
from tui.widgets.status_footer import StatusFooter
from tui.widgets.tones import Span
from tui.widgets.wrapped_text import WrappedText

LEAST_FOLDER_CELLS = 20
NOTHING = (
    "Nothing is being downloaded.\n\nD on a checkpoint or on its files downloads them,"
    " A on a job its source code."
)


class DownloadsScreen(AppScreen):
    """The downloads above, the files of the one under the cursor below."""

    CSS_PATH = "downloads.tcss"
    SCOPES = (Scope.DOWNLOADS,)
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(*SCOPES, Scope.SCREEN)

    def compose(self) -> ComposeResult:
        """Header, the two tables, and what to say of the one under the cursor."""
        yield FactLine(id="header")
        yield ConnectionNotice().data_bind(DownloadsScreen.connection)
        yield RowTable(TRANSFER_COLUMNS, lambda item: item.id, id="transfers", opens=False, sized=True)
        yield WrappedText(id="about")
        yield RowTable(FILE_COLUMNS, lambda file: str(file.path), id="files", opens=False, sized=True)
        yield WrappedText(NOTHING, id="nothing")
        yield StatusFooter().data_bind(DownloadsScreen.connection)

    def on_mount(self) -> None:
        """The downloads have the keyboard."""
        self.query_one("#transfers").focus()
        self._show()

    def watch_downloads(self, before: Transfers, downloads: Transfers) -> None:
        """Show how far they are."""
        if self.is_running and self.query("#transfers"):
            self._show()
            if len(downloads.items) > len(before.items):
                self._table.move_to(downloads.items[-1].id)

    @property
    def _table(self) -> RowTable[Transfer]:
        return self.query_one("#transfers", RowTable)

    @property
    def _chosen(self) -> Transfer | None:
        return self._table.cursor_row

    def _show(self) -> None:
        items = self.downloads.items
        self._table.set_rows(items)
        self._table.styles.height = min(len(items) + 1, max(3, self.size.height // 2 - 2))
        self.set_class(not items, "-nothing")
        self._show_header()
        self._show_chosen()

    def _show_header(self) -> None:
        going = self.downloads.under_way
        facts: list[list[Span]] = [[("‹ ", "muted"), ("Downloads", "key")]]
        if going:
            facts.append([(self.downloads.indicator(), "running")])
        stuck = sum(item.state in RESUMABLE for item in self.downloads.items)
        if stuck:
            facts.append([(f"▲ {stuck} not complete", "warn")])
        ended = len(self.downloads.items) - len(going) - stuck
        if ended:
            facts.append([(f"{ended} done", "good")])
        self.query_one("#header", FactLine).set_facts(facts)

    @on(RowTable.Highlighted, "#transfers")
    def _show_chosen(self) -> None:
        item = self._chosen
        if item is None:
            return
        self.query_one("#files", RowTable).set_rows(item.files)
        files = f"{files_words(len(item.files))}, " if item.files else ""  # not listed yet, or never
        lead = f"{files}{bytes_iec(item.size_bytes)} → "
        about = Text(
            lead + middle(inert(item.folder), max(LEAST_FOLDER_CELLS, self.size.width - 2 - len(lead)))
        )
        if item.error:
            about.append(f"\n✗ {inert(item.error)}")
        elif item.stalled_s:
            note = f" ({inert(item.note)})" if item.note else ""
            about.append(f"\nNothing has arrived for {duration(item.stalled_s)}{note}.")
        elif item.note:
            about.append(f"\n{inert(item.note)}")
        if item.state in RESUMABLE:
            key = self.key_for("downloads.retry_download")
            kept = f"What has arrived is kept; {key} goes on with the rest."
            about.append(f"\n{kept if item.done_bytes else f'Nothing has arrived; {key} tries again.'}")
        self.query_one("#about", WrappedText).update(about)

    # Actions

    def action_cancel_download(self) -> None:
        """Stop the one under the cursor."""
        item = self._chosen
        if item is not None and item.is_under_way:
            self.post_message(CancelDownloadRequested(item.id))

    def action_retry_download(self) -> None:
        """Go on with the one under the cursor."""
        item = self._chosen
        if item is None:
            return
        if item.state in RESUMABLE:
            self.post_message(RetryDownloadRequested(item.id))
        else:
            self.notify("There is nothing to try again: it goes on, or has arrived.")

    def action_copy_folder(self) -> None:
        """Copy where it goes."""
        item = self._chosen
        if item is not None:
            self.post_message(CopyRequested(item.folder, "folder"))

    def action_clear_finished(self) -> None:
        """Take what has ended off the list."""
        self.post_message(ClearDownloadsRequested())

    def action_refresh(self) -> None:
        """Nothing to ask for: the list is this machine's own."""
        self._show()

    def action_back(self) -> None:
        """Out of the screen; downloads go on."""
        self.app.pop_screen()
