"""A message as the rows it is shown on: inert text, split and wrapped, never more than is worth showing."""

from __future__ import annotations

from rich.cells import chop_cells

from api_client.streams.records import LogEntry, LogLine
from tui.insight.text import inert, last_carriage_segment

SHOWN_CHARACTERS = 32_768
"""How much of one message is laid out. What is beyond is counted, not shown: a hostile or broken
line costs no more than this."""

_CACHED_ENTRIES = 2048


def message_rows(message: str, wrap_cells: int | None) -> tuple[str, ...]:
    """The rows of one message: one a line of it, more where they are wrapped.

    Progress bars that overwrite themselves (carriage returns) show their last state.
    """
    cut = message
    if len(message) > SHOWN_CHARACTERS:
        # A progress bar's last state is at the end, everything else begins at the beginning.
        if "\r" in message[-SHOWN_CHARACTERS:].rstrip("\r\n") and "\n" not in message.rstrip("\r\n"):
            cut = last_carriage_segment(message[-SHOWN_CHARACTERS:])
        else:
            rest = len(message) - SHOWN_CHARACTERS
            cut = f"{message[:SHOWN_CHARACTERS]} … {rest:,} more characters"
    if "\n" not in cut:
        row = inert(last_carriage_segment(cut) if "\r" in cut else cut)
        return (row,) if wrap_cells is None else _wrapped((row,), wrap_cells)
    parts = cut.rstrip("\r\n").split("\n")
    rows = tuple(inert(last_carriage_segment(part)) for part in parts)
    return rows if wrap_cells is None else _wrapped(rows, wrap_cells)


def _wrapped(rows: tuple[str, ...], cells: int) -> tuple[str, ...]:
    wrapped: list[str] = []
    for row in rows:
        if row.isascii():
            if len(row) <= cells:
                wrapped.append(row)
            else:
                wrapped += [row[begin : begin + cells] for begin in range(0, len(row), cells)]
        else:
            wrapped += chop_cells(row, cells) or [""]
    return tuple(wrapped)


class Layout:
    """Rows of entries, remembered for those looked at lately."""

    def __init__(self) -> None:
        self._wrap_cells: int | None = None
        self._rows: dict[int, tuple[LogEntry, tuple[str, ...]]] = {}

    @property
    def wrap_cells(self) -> int | None:
        """Cells to wrap at; None to leave lines long."""
        return self._wrap_cells

    def set_wrap(self, cells: int | None) -> None:
        """Wrap at so many cells (1 at least), or not at all."""
        cells = None if cells is None else max(1, cells)
        if cells != self._wrap_cells:
            self._wrap_cells = cells
            self._rows.clear()

    def rows(self, entry: LogEntry) -> tuple[str, ...]:
        """The rows of an entry, at least one; a gap marker has one empty row."""
        known = self._rows.get(id(entry))
        if known is not None and known[0] is entry:
            return known[1]
        rows = message_rows(entry.message, self._wrap_cells) if isinstance(entry, LogLine) else ("",)
        if len(self._rows) >= _CACHED_ENTRIES:
            self._rows.clear()
        self._rows[id(entry)] = (entry, rows)
        return rows
