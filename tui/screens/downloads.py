"""The downloads screen: all downloads, and the files of the selected download."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult

from api_client.transfers.records import FileProgress, FileState
from tui.actions.table import Scope
from tui.analysis.transfers import (
    ENDED,
    RESUMABLE,
    STALLED,
    STATE_VIEWS,
    Transfer,
    Transfers,
    TransferState,
    speed_text,
    time_left,
)
from tui.screens import messages
from tui.screens.base import AppScreen, Page, PageServices
from tui.tables.column import Column, Span
from tui.text.names import clip_middle
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted, duration, percent, thin_bar
from tui.widgets.row_table import RowTable
from tui.widgets.text_panel import WrappedText

BAR_CELLS = 12


def _state_cell(view: tuple[str, str, str]) -> list[Span]:
    sign, word, tone = view
    return [(f"{sign} {word}", tone)]


def _progress_cell(fraction: float | None) -> list[Span]:
    if fraction is None:
        return []
    done, rest = thin_bar(fraction, BAR_CELLS)
    return [(done, "running"), (rest, "faint"), (f" {percent(fraction):>4}", "plain")]


def _size_text(done_bytes: int, size_bytes: int | None, *, is_complete: bool) -> str:
    size = bytes_iec(size_bytes)
    return size if is_complete or size_bytes is None else f"{bytes_iec(done_bytes)} / {size}"


def _speed_cell(transfer: Transfer) -> Sequence[Span]:
    if transfer.stalled_s:
        return [(STALLED, "caution")]
    if transfer.state is TransferState.ACTIVE:
        return [(speed_text(transfer.speed), "plain")]
    return []


TRANSFER_COLUMNS: tuple[Column[Transfer], ...] = (
    Column(
        "name",
        "download",
        lambda transfer: [(transfer.title, "strong")],
        width=18,
        flex=2,
        max_width=64,
        priority=10,
    ),
    Column("state", "", lambda transfer: _state_cell(STATE_VIEWS[transfer.state]), width=11, priority=9),
    Column(
        "progress", "", lambda transfer: _progress_cell(transfer.fraction), width=BAR_CELLS + 6, priority=8
    ),
    Column(
        "size",
        "size",
        lambda transfer: [
            (
                _size_text(
                    transfer.done_bytes, transfer.size_bytes, is_complete=not transfer.is_running_or_queued
                ),
                "plain",
            )
        ],
        width=21,
        align="right",
        priority=5,
    ),
    Column("speed", "speed", _speed_cell, width=10, align="right", priority=6),
    Column(
        "left", "left", lambda transfer: [(time_left(transfer), "plain")], width=7, align="right", priority=7
    ),
)


FILE_STATE_VIEWS: dict[FileState, tuple[str, str, str]] = {
    FileState.WAITING: ("◌", "waiting", "waiting"),
    FileState.ACTIVE: ("↓", "loading", "running"),
    FileState.VERIFYING: ("↓", "verifying", "running"),
    FileState.DONE: ("✓", "done", "muted"),
    FileState.SKIPPED: ("=", "present", "muted"),
    FileState.FAILED: ("✗", "failed", "bad"),
}
"""Sign, word and tone of each state of a single file."""


def _file_name_cell(file: FileProgress) -> list[Span]:
    """Return the name, then the folder: file names are more distinctive than their folders."""
    folder, _, name = file.name.rpartition("/")
    return [(sanitize(name or file.path.name), "plain"), (f"  {sanitize(folder)}" if folder else "", "muted")]


def _remark_cell(file: FileProgress) -> list[Span]:
    return [(sanitize(file.error), "bad") if file.error else (sanitize(file.note), "muted")]


FILE_COLUMNS: tuple[Column[FileProgress], ...] = (
    Column("name", "file", _file_name_cell, width=20, flex=3, max_width=64, priority=10),
    Column("state", "", lambda file: _state_cell(FILE_STATE_VIEWS[file.state]), width=11, priority=9),
    Column(
        "progress",
        "",
        lambda file: _progress_cell(
            file.done_bytes / file.size_bytes if file.size_bytes and file.state is FileState.ACTIVE else None
        ),
        width=BAR_CELLS + 6,
        priority=6,
    ),
    Column(
        "size",
        "size",
        lambda file: [(bytes_iec(file.size_bytes), "plain")],
        width=9,
        align="right",
        priority=8,
    ),
    Column("error", "", _remark_cell, width=10, flex=2, priority=3),
)


NO_DOWNLOADS = (
    "No downloads.\n\nPress {files} on a checkpoint or its files to download them,"
    " {source} on a job for its source code."
)


class DownloadsScreen(AppScreen):
    """All downloads above, the files of the selected download below."""

    CSS_PATH = "downloads.tcss"
    AUTO_FOCUS = "#transfers"
    SCOPES = (Scope.DOWNLOADS,)

    def __init__(self) -> None:
        super().__init__()
        self._table = RowTable(
            TRANSFER_COLUMNS, lambda transfer: transfer.id, id="transfers", opens=False, sizes_by_content=True
        )

    def compose_body(self) -> ComposeResult:
        yield self._table
        yield WrappedText(id="about")
        yield RowTable(
            FILE_COLUMNS,
            lambda file: str(file.path),
            id="files",
            opens=False,
            sizes_by_content=True,
            aligned_with=self._table,
        )
        files_key, source_key = map(self.key_for, ("checkpoints.download_checkpoint", "job.download_source"))
        yield WrappedText(NO_DOWNLOADS.format(files=files_key, source=source_key), id="nothing")

    def on_mount(self) -> None:
        self._show()
        if running := self.downloads.under_way:
            self._table.move_to(running[0].id)

    def watch_downloads(self, previous: Transfers, downloads: Transfers) -> None:
        if self.is_running and self.query("#transfers"):
            self._show()
            if len(downloads.items) > len(previous.items):
                self._table.move_to(downloads.items[-1].id)

    def _show(self) -> None:
        items = self.downloads.items
        self._table.set_rows(items)
        self._table.styles.height = min(len(items) + 1, max(3, self.size.height // 2 - 2))
        self.set_class(not items, "-nothing")
        self._show_header()
        self._show_selected()

    action_refresh = _show  # the list is in memory: there is nothing to read

    def _show_header(self) -> None:
        running = self.downloads.under_way
        facts: list[list[Span]] = []
        if running:
            facts.append([(self.downloads.indicator(), "running")])
        for state, count in Counter(transfer.state for transfer in self.downloads.items).items():
            if state in ENDED:
                sign, word, tone = STATE_VIEWS[state]
                facts.append([(f"{sign} {count} {word}", tone)])
        self.set_header("Downloads", "", facts)

    @on(RowTable.Highlighted, "#transfers")
    def _show_selected(self) -> None:
        transfer = self._table.cursor_row
        self.hide_hints(
            cancel_download=transfer is None or not transfer.is_running_or_queued,
            retry_download=transfer is None or transfer.state not in RESUMABLE,
            copy_folder=transfer is None,
        )
        if transfer is None:
            return
        self.query_one("#files", RowTable).set_rows(transfer.files)
        # no files: they have not been listed yet, or listing them failed
        files_text = f"{counted(len(transfer.files), 'file')}, " if transfer.files else ""
        lead_text = f"{files_text}{bytes_iec(transfer.size_bytes)} → "
        about = Text(
            lead_text + clip_middle(sanitize(transfer.folder), max(20, self.size.width - 2 - len(lead_text)))
        )
        if transfer.error:
            about.append(f"\n✗ {sanitize(transfer.error)}")
        elif transfer.stalled_s:
            note = f" ({sanitize(transfer.note)})" if transfer.note else ""
            about.append(f"\nNo data for {duration(transfer.stalled_s)}{note}.")
        elif transfer.note:
            about.append(f"\n{sanitize(transfer.note)}")
        if transfer.state in RESUMABLE:
            key = self.key_for("downloads.retry_download")
            retry_note = f"Nothing downloaded yet; press {key} to retry."
            resume_note = f"Partial files are kept; press {key} to resume."
            about.append(f"\n{resume_note if transfer.done_bytes else retry_note}")
        self.query_one("#about", WrappedText).update(about)

    # Actions

    def _download_for(self, action: str, no_effect_reason: str) -> Transfer | None:
        """Return the chosen download; if the action has no effect on it, notify why and return None."""
        transfer = self._table.cursor_row
        if action in self.hidden_hints:
            self.notify("No downloads." if transfer is None else no_effect_reason)
            return None
        return transfer

    def action_cancel_download(self) -> None:
        if transfer := self._download_for("cancel_download", "This download has ended."):
            self.post_message(messages.CancelDownloadRequested(transfer.id))

    def action_retry_download(self) -> None:
        if transfer := self._download_for(
            "retry_download", "Only canceled or failed downloads can be resumed."
        ):
            self.post_message(messages.RetryDownloadRequested(transfer.id))

    def action_copy_folder(self) -> None:
        if transfer := self._download_for("copy_folder", ""):
            self.post_message(messages.CopyRequested(transfer.folder, "folder"))

    def action_clear_finished(self) -> None:
        if not any(transfer.state in ENDED for transfer in self.downloads.items):
            self.notify("No download has ended.")
        self.post_message(messages.ClearDownloadsRequested())


@dataclass(frozen=True, eq=False)
class DownloadsPage(Page):
    def open(self, services: PageServices) -> DownloadsScreen:
        return DownloadsScreen()
