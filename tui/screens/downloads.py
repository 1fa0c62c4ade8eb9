"""The downloads screen: all downloads, and the files of one."""

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


def _size_text(done_bytes: int, size_bytes: int | None, *, whole: bool) -> str:
    size = bytes_iec(size_bytes)
    return size if whole or size_bytes is None else f"{bytes_iec(done_bytes)} / {size}"


def _speed_cell(item: Transfer) -> Sequence[Span]:
    if item.stalled_s:
        return [(STALLED, "caution")]
    if item.state is TransferState.ACTIVE:
        return [(speed_text(item.speed), "plain")]
    return []


TRANSFER_COLUMNS: tuple[Column[Transfer], ...] = (
    Column(
        "name", "download", lambda item: [(item.title, "strong")], width=18, flex=2, max_width=64, priority=10
    ),
    Column("state", "", lambda item: _state_cell(STATE_VIEWS[item.state]), width=11, priority=9),
    Column("progress", "", lambda item: _progress_cell(item.fraction), width=BAR_CELLS + 6, priority=8),
    Column(
        "size",
        "size",
        lambda item: [
            (_size_text(item.done_bytes, item.size_bytes, whole=not item.is_running_or_queued), "plain")
        ],
        width=21,
        align="right",
        priority=5,
    ),
    Column("speed", "speed", _speed_cell, width=10, align="right", priority=6),
    Column("left", "left", lambda item: [(time_left(item), "plain")], width=7, align="right", priority=7),
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
    """All downloads above, the files of the selected one below."""

    CSS_PATH = "downloads.tcss"
    AUTO_FOCUS = "#transfers"
    SCOPES = (Scope.DOWNLOADS,)

    def __init__(self) -> None:
        super().__init__()
        self._table = RowTable(
            TRANSFER_COLUMNS, lambda item: item.id, id="transfers", opens=False, sized=True
        )

    def compose_body(self) -> ComposeResult:
        yield self._table
        yield WrappedText(id="about")
        yield RowTable(
            FILE_COLUMNS,
            lambda file: str(file.path),
            id="files",
            opens=False,
            sized=True,
            like=self._table,
        )
        files, source = map(self.key_for, ("checkpoints.download_checkpoint", "job.download_source"))
        yield WrappedText(NO_DOWNLOADS.format(files=files, source=source), id="nothing")

    def on_mount(self) -> None:
        self._show()
        if running := self.downloads.under_way:
            self._table.move_to(running[0].id)

    def watch_downloads(self, before: Transfers, downloads: Transfers) -> None:
        if self.is_running and self.query("#transfers"):
            self._show()
            if len(downloads.items) > len(before.items):
                self._table.move_to(downloads.items[-1].id)

    def _show(self) -> None:
        items = self.downloads.items
        self._table.set_rows(items)
        self._table.styles.height = min(len(items) + 1, max(3, self.size.height // 2 - 2))
        self.set_class(not items, "-nothing")
        self._show_header()
        self._show_chosen()

    action_refresh = _show  # the list is local

    def _show_header(self) -> None:
        going = self.downloads.under_way
        facts: list[list[Span]] = []
        if going:
            facts.append([(self.downloads.indicator(), "running")])
        for state, number in Counter(item.state for item in self.downloads.items).items():
            if state in ENDED:
                sign, word, tone = STATE_VIEWS[state]
                facts.append([(f"{sign} {number} {word}", tone)])
        self.set_header("Downloads", "", facts)

    @on(RowTable.Highlighted, "#transfers")
    def _show_chosen(self) -> None:
        item = self._table.cursor_row
        self.unhint(
            cancel_download=item is None or not item.is_running_or_queued,
            retry_download=item is None or item.state not in RESUMABLE,
            copy_folder=item is None,
        )
        if item is None:
            return
        self.query_one("#files", RowTable).set_rows(item.files)
        # without files, they are not listed yet, or listing failed
        files = f"{counted(len(item.files), 'file')}, " if item.files else ""
        lead = f"{files}{bytes_iec(item.size_bytes)} → "
        about = Text(lead + clip_middle(sanitize(item.folder), max(20, self.size.width - 2 - len(lead))))
        if item.error:
            about.append(f"\n✗ {sanitize(item.error)}")
        elif item.stalled_s:
            note = f" ({sanitize(item.note)})" if item.note else ""
            about.append(f"\nNo data for {duration(item.stalled_s)}{note}.")
        elif item.note:
            about.append(f"\n{sanitize(item.note)}")
        if item.state in RESUMABLE:
            key = self.key_for("downloads.retry_download")
            resume_note = f"Partial files are kept; press {key} to resume."
            about.append(
                f"\n{resume_note if item.done_bytes else f'Nothing downloaded yet; press {key} to retry.'}"
            )
        self.query_one("#about", WrappedText).update(about)

    # Actions

    def _download_for(self, action: str, why: str) -> Transfer | None:
        """Return the chosen download; if the action has no effect on it, notify why and return None."""
        item = self._table.cursor_row
        if action in self.unhinted:
            self.notify("No downloads." if item is None else why)
            return None
        return item

    def action_cancel_download(self) -> None:
        if item := self._download_for("cancel_download", "This download has ended."):
            self.post_message(messages.CancelDownloadRequested(item.id))

    def action_retry_download(self) -> None:
        if item := self._download_for("retry_download", "Only canceled and failed downloads resume."):
            self.post_message(messages.RetryDownloadRequested(item.id))

    def action_copy_folder(self) -> None:
        if item := self._download_for("copy_folder", ""):
            self.post_message(messages.CopyRequested(item.folder, "folder"))

    def action_clear_finished(self) -> None:
        if not any(item.state in ENDED for item in self.downloads.items):
            self.notify("No download has ended.")
        self.post_message(messages.ClearDownloadsRequested())


@dataclass(frozen=True, eq=False)
class DownloadsPage(Page):
    def open(self, services: PageServices) -> DownloadsScreen:
        return DownloadsScreen()
