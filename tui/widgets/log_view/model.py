"""What a log view holds and where its reader is: everything but the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from api_client.streams.records import LogEntry, stamp_ns
from tui.widgets.log_view.rows import LineFilter, VisibleRows
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.viewport import Place


class LogModel:
    """The entries, those of them that are shown, and the places that must not move under the reader.

    Attributes:
        top: the first line on the screen.
        match: the row that the reader searched for, if any.
        unseen: rows that came at the end while the reader did not follow.
    """

    def __init__(self, max_lines: int) -> None:
        self.store = LogStore(max_lines)
        self.visible = VisibleRows(self.store)
        self.top = Place()
        self.match: int | None = None
        self.unseen = 0
        self._place_ns: int | None = None  # the reader's time while a new filter is being applied

    @property
    def rows(self) -> list[LogEntry]:
        """The entries that are shown."""
        return self.visible.rows

    def append(self, batch: Sequence[LogEntry], *, following: bool) -> bool:
        """Take newer entries; late ones go where they belong. Returns whether only the end changed."""
        added, late = self.visible.append(batch)
        if late:
            self._insert(late)
        gone = self.visible.trim()
        self._shift(-gone)
        if not following:
            self.unseen += added
        return not late and not gone

    def prepend(self, older: Sequence[LogEntry]) -> int:
        """Take older entries (ascending); returns how many, the newest of them, had room."""
        accepted, added = self.visible.prepend(older)
        self._shift(added)
        return accepted

    def go(self, place: Place) -> None:
        """Take the reader to a place."""
        self.top = place
        self._place_ns = None  # from now on this place counts, not the one from before the filter

    def clear(self) -> None:
        """Forget all entries; the filter stays."""
        self.visible.clear()
        self.top = Place()
        self.match = None
        self.unseen = 0
        self._place_ns = None

    def set_filter(self, wanted: LineFilter) -> None:
        """Show other entries from now on; call `build` until it says that it is complete."""
        if self._place_ns is None and self.top.row < len(self.rows):
            self._place_ns = stamp_ns(self.rows[self.top.row])
        self.visible.set_filter(wanted)
        self.match = None
        self.unseen = 0

    def build(self, goes_on: Callable[[], bool]) -> bool:
        """Filter older entries while `goes_on` says so; returns whether all are done."""
        added = self.visible.build(goes_on)
        if self._place_ns is None:
            self._shift(added)
        else:
            self.top = Place(self.visible.index_at(self._place_ns))
        if self.visible.is_complete:
            self._place_ns = None
        return self.visible.is_complete

    def _insert(self, late: Sequence[LogEntry]) -> None:
        places = self.visible.insert(late)
        row = self.top.row
        self.top = Place(row + sum(1 for place in places if place <= row), self.top.line)
        if self.match is not None:
            match = self.match
            self.match = match + sum(1 for place in places if place <= match)

    def _shift(self, rows: int) -> None:
        """Rows came (or went, when negative) at the front."""
        if not rows:
            return
        row = self.top.row + rows
        self.top = Place(row, self.top.line) if row >= 0 else Place()
        if self.match is not None:
            self.match = self.match + rows if self.match + rows >= 0 else None
