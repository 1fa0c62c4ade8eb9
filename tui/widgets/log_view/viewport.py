"""Where a log view stands among its rows, and which of them fill the screen.

A place is a row (a line, or a fold of some) and a screen line within it, as wrapped and multi-line messages
take several. So scrolling costs what is on the screen; no table of all heights is kept, and the scroll bar
counts rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LinesOf = Callable[[int], int]
"""How many screen lines a row takes; one at least."""


@dataclass(frozen=True, slots=True)
class Place:
    """A screen line: a row's index and the line within it."""

    row: int = 0
    line: int = 0


def page_from(count: int, top: Place, height: int, lines_of: LinesOf) -> list[Place]:
    """The screen lines from a place downwards; fewer than `height` when the rows end."""
    page: list[Place] = []
    row, line = top.row, top.line
    while row < count and len(page) < height:
        stop = min(lines_of(row), line + height - len(page))
        page.extend(Place(row, number) for number in range(line, stop))
        row, line = row + 1, 0
    return page


def last_page(count: int, height: int, lines_of: LinesOf) -> Place:
    """The top of the page that ends with the last line."""
    left = height
    for row in range(count - 1, -1, -1):
        lines = lines_of(row)
        if lines >= left:
            return Place(row, lines - left)
        left -= lines
    return Place()


def moved(count: int, top: Place, lines: int, lines_of: LinesOf) -> Place:
    """The place so many screen lines further down (or up, when negative), not beyond the rows' ends."""
    row, line = min(top.row, max(0, count - 1)), top.line
    if not count:
        return Place()
    if lines >= 0:
        line += lines
        while line >= (height := lines_of(row)):
            if row == count - 1:
                return Place(row, height - 1)
            line -= height
            row += 1
        return Place(row, line)
    line += lines
    while line < 0:
        if row == 0:
            return Place()
        row -= 1
        line += lines_of(row)
    return Place(row, line)


def earlier(first: Place, second: Place) -> Place:
    """The one of two places that comes first."""
    return first if (first.row, first.line) <= (second.row, second.line) else second


def thumb(rows: int, top_row: int, shown_rows: int, height: int) -> tuple[int, int]:
    """First line and length of a scroll bar's thumb on a track of `height` lines; (0, 0) for none."""
    if rows <= shown_rows or height <= 0:
        return 0, 0
    length = max(1, round(height * shown_rows / rows))
    furthest = max(1, rows - shown_rows)
    start = round((height - length) * min(top_row, furthest) / furthest)
    return start, length
