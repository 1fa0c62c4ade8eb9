"""Lay out messages as rows, and locate the rows that fill the screen.

A scroll position is a row and a line within it. So scrolling costs what is on the screen, and no table of all
heights is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from rich.cells import chop_cells
from rich.text import Span, Text

from tui.analysis.logs.structured import pretty_rows
from tui.text.sanitize import last_carriage_segment
from tui.text.units import counted
from tui.widgets.log_view.ansi import styled_spans

LinesOf = Callable[[int], int]
"""Number of screen lines of a row, at least one."""


@dataclass(frozen=True, slots=True, order=True)
class ScrollPosition:
    """A screen line: index of a row, and the line within it."""

    row: int = 0
    line: int = 0


def page_from(count: int, top: ScrollPosition, height: int, lines_of: LinesOf) -> list[ScrollPosition]:
    """Return the screen lines from `top` down; fewer than `height` if the rows end."""
    page: list[ScrollPosition] = []
    row, line = top.row, top.line
    while row < count and len(page) < height:
        stop = min(lines_of(row), line + height - len(page))
        page.extend(ScrollPosition(row, number) for number in range(line, stop))
        row, line = row + 1, 0
    return page


def last_page(count: int, height: int, lines_of: LinesOf) -> ScrollPosition:
    if not count:
        return ScrollPosition()
    return moved(count, ScrollPosition(count - 1, lines_of(count - 1)), -height, lines_of)


def moved(count: int, top: ScrollPosition, lines: int, lines_of: LinesOf) -> ScrollPosition:
    """Return the place `lines` screen lines further down (up if negative), limited to existing rows."""
    row, line = min(top.row, max(0, count - 1)), top.line
    if not count:
        return ScrollPosition()
    if lines >= 0:
        line += lines
        while line >= (height := lines_of(row)):
            if row == count - 1:
                return ScrollPosition(row, height - 1)
            line -= height
            row += 1
        return ScrollPosition(row, line)
    line += lines
    while line < 0:
        if row == 0:
            return ScrollPosition()
        row -= 1
        line += lines_of(row)
    return ScrollPosition(row, line)


def thumb(rows: int, top_row: int, shown_rows: int, height: int) -> tuple[int, int]:
    """Return the first line and length of a scroll bar's thumb on `height` lines; (0, 0) for none."""
    if rows <= shown_rows or height <= 0:
        return 0, 0
    length = max(1, round(height * shown_rows / rows))
    furthest = max(1, rows - shown_rows)
    start = round((height - length) * min(top_row, furthest) / furthest)
    return start, length


SHOWN_CHARACTERS = 32_768
"""Maximum number of characters of a message to lay out.

The rest is only counted, so that a hostile or broken line stays cheap.
"""


class TextRow(NamedTuple):
    """A row of sanitized text, and the ranges colored by the job."""

    text: str
    spans: tuple[Span, ...] = ()


def message_rows(message: str, wrap_cells: int | None, *, pretty: bool = False) -> tuple[TextRow, ...]:
    """Return the rows of a message, one per line of text or more if wrapped.

    Progress bars that overwrite themselves (carriage returns) show their last state. With ``pretty``, an
    object in the message is expanded over several rows.
    """
    rows: list[TextRow] | None = None
    if pretty:
        spread = pretty_rows(message)
        rows = None if spread is None else [TextRow(row) for row in spread]
    if rows is None:
        cut = _cut(message)
        parts = cut.rstrip("\r\n").split("\n") if "\n" in cut else [cut]
        rows = [_row(part) for part in parts]
    if wrap_cells is None:
        return tuple(rows)
    return tuple(piece for row in rows for piece in _wrapped(row, wrap_cells))


def _cut(message: str) -> str:
    if len(message) <= SHOWN_CHARACTERS:
        return message
    # A progress bar's last state is at the end; any other text is read from the beginning.
    end = message[-SHOWN_CHARACTERS:]
    if "\r" in end.rstrip("\r\n") and "\n" not in message.rstrip("\r\n"):
        return last_carriage_segment(end)
    rest = len(message) - SHOWN_CHARACTERS
    return f"{message[:SHOWN_CHARACTERS]} … {counted(rest, 'more character')}"


def _row(text: str) -> TextRow:
    plain, spans = styled_spans(last_carriage_segment(text))
    return TextRow(plain, tuple(spans))


def _wrapped(row: TextRow, cells: int) -> list[TextRow]:
    text, spans = row
    if not text.isascii():
        pieces = chop_cells(text, cells) or [""]
    elif len(text) <= cells:
        return [row]
    else:
        pieces = [text[begin : begin + cells] for begin in range(0, len(text), cells)]
    if not spans:
        return [TextRow(piece) for piece in pieces]
    ends = accumulate(map(len, pieces[:-1]))
    return [TextRow(line.plain, tuple(line.spans)) for line in Text(text, spans=list(spans)).divide(ends)]
