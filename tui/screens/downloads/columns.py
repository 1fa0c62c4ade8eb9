"""The columns of the two tables: downloads, and the files of one."""

from __future__ import annotations

from collections.abc import Sequence

from api_client.downloads.records import FileProgress, FileState
from tui.insight.share_bar import share_bar
from tui.insight.text import inert
from tui.insight.transfers import (
    FILE_STATE_VIEWS,
    STALLED,
    STATE_VIEWS,
    Transfer,
    TransferState,
    speed_words,
    time_left,
)
from tui.insight.units import bytes_iec, percent
from tui.widgets.row_table import Column
from tui.widgets.tones import Span

BAR_CELLS = 12


def _state(view: tuple[str, str, str]) -> list[Span]:
    sign, word, tone = view
    return [(f"{sign} {word}", tone)]


def _progress(fraction: float | None) -> list[Span]:
    if fraction is None:
        return []
    return [(share_bar(fraction, BAR_CELLS), "running"), (f" {percent(fraction):>5}", "plain")]


def _of(done_bytes: int, size_bytes: int | None, *, whole: bool) -> str:
    size = bytes_iec(size_bytes)
    return size if whole or size_bytes is None else f"{bytes_iec(done_bytes)} / {size}"


def _pace(item: Transfer) -> Sequence[Span]:
    if item.stalled_s:
        return [(STALLED, "caution")]
    if item.state is TransferState.ACTIVE:
        return [(speed_words(item.speed), "plain")]
    return []


TRANSFER_COLUMNS: tuple[Column[Transfer], ...] = (
    Column("title", "download", lambda item: [(item.title, "strong")], width=18, flex=2, keep=10),
    Column("state", "", lambda item: _state(STATE_VIEWS[item.state]), width=11, keep=9),
    Column("progress", "", lambda item: _progress(item.fraction), width=BAR_CELLS + 6, keep=8),
    Column(
        "size",
        "size",
        lambda item: [(_of(item.done_bytes, item.size_bytes, whole=not item.is_under_way), "plain")],
        width=21,
        align="right",
        keep=5,
    ),
    Column("speed", "speed", _pace, width=10, align="right", keep=6),
    Column("left", "left", lambda item: [(time_left(item), "plain")], width=7, align="right", keep=7),
)


def _file_name(file: FileProgress) -> list[Span]:
    """The name, then where it is: files are told apart by their names, seldom by their folders."""
    folder, _, name = file.name.rpartition("/")
    return [(inert(name or file.path.name), "plain"), (f"  {inert(folder)}" if folder else "", "muted")]


def _remark(file: FileProgress) -> list[Span]:
    return [(inert(file.error), "bad") if file.error else (inert(file.note), "muted")]


FILE_COLUMNS: tuple[Column[FileProgress], ...] = (
    Column("name", "file", _file_name, width=20, flex=3, keep=10),
    Column("state", "", lambda file: _state(FILE_STATE_VIEWS[file.state]), width=11, keep=9),
    Column(
        "progress",
        "",
        lambda file: _progress(
            file.done_bytes / file.size_bytes if file.size_bytes and file.state is FileState.ACTIVE else None
        ),
        width=BAR_CELLS + 6,
        keep=6,
    ),
    Column(
        "size", "size", lambda file: [(bytes_iec(file.size_bytes), "plain")], width=9, align="right", keep=8
    ),
    Column(
        "error",
        "",
        _remark,
        width=10,
        flex=2,
        keep=3,
    ),
)
