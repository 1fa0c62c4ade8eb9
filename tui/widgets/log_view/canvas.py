"""The screen side of a log view: when it is worked out, painted and told."""

from __future__ import annotations

import asyncio

from textual.geometry import Region
from textual.timer import Timer

from api_client.streams.records import LogEntry
from tui.widgets.log_view.messages import CursorMoved, FirstErrorChanged, UnseenChanged
from tui.widgets.log_view.sheet import LogSheet
from tui.widgets.log_view.slices import Slice
from tui.widgets.log_view.viewport import Place, moved

PAINT_INTERVAL_S = 0.05
"""Under load the view paints this often: more is not seen, and costs."""


class LogCanvas(LogSheet):
    """Paints a log as its lines come, are filtered and folded: at most twenty times a second."""

    _painted_s = float("-inf")
    _paint_timer: Timer | None = None
    _told_unseen = 0
    _told_error: int | None = None
    _told_error_entry: LogEntry | None = None
    _told_cursor: tuple[int | None, int] = (None, 0)
    _is_building = False
    _kept_line: int | None = None

    def on_mount(self) -> None:
        """A shared store may hold lines already."""
        self._build()

    def _on_changed(self, end_only: bool, renumbered: bool) -> None:
        """The store has other lines."""
        if self._times.origin_ns is None and len(self._model.store):
            self._times.origin_ns = self._model.store.stamp(self._model.store.first)
        if renumbered:
            self._layout.forget()
            self._painter.forget()
        self._learn_span()
        if self._model.visible.is_complete:
            self._paint_later(end_only=end_only)
        else:
            self._build()

    def _learn_span(self) -> None:
        """Times tell their day where the log goes over several."""
        span_ns = self._model.store.span_ns
        if span_ns is not None and self._times.learn_span(*span_ns) and self.is_attached:
            self._painter.forget()
            self._lay_out()

    def _build(self) -> None:
        """Filter and fold for a moment, and go on after the next turn of the event loop if there is more."""
        if not self.is_attached or self._is_building:
            return
        if not self._model.build(Slice(self._monotonic_s)):
            self._is_building = True
            # Not by a message: those that wait are handled without a turn for anybody else.
            asyncio.get_running_loop().call_soon(self._build_on)
        elif self._kept_line is not None:
            self._put_back(self._kept_line)
            self._kept_line = None
        self._paint_later()

    def _keep_line(self) -> None:
        """Other rows are about to be shown: the reader's line shall stay where it is on the screen."""
        row = self._model.cursor_row
        if self._kept_line is None and row is not None:
            lines = [number for number, place in enumerate(self._current_page()) if place == Place(row)]
            self._kept_line = lines[0] if lines else None

    def _put_back(self, line: int) -> None:
        """Bring the reader's line back to where it was on the screen."""
        model, row = self._model, self._model.cursor_row
        if row is not None:
            model.go(moved(len(model), Place(row), -line, self._lines_of))
            self._page = None

    def _build_on(self) -> None:
        self._is_building = False
        self._build()

    # --- when ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Paint now what waits to be painted."""
        if self._paint_timer is not None:
            self._paint()

    def _paint_later(self, *, end_only: bool = False) -> None:
        """Paint soon, but not more often than is seen."""
        if self._paint_timer is not None or not self.is_attached:
            self._page = None
            return
        wait_s = self._painted_s + PAINT_INTERVAL_S - self._monotonic_s()
        if wait_s <= 0:
            self._paint(end_only=end_only)
        else:
            self._page = None
            self._paint_timer = self.set_timer(wait_s, self._paint)

    def _paint(self, *, end_only: bool = False) -> None:
        if self._paint_timer is not None:
            self._paint_timer.stop()
            self._paint_timer = None
        self._painted_s = self._monotonic_s()
        before, self._page = self._page, None
        self._tell()
        width, height = self._width, self._height
        if end_only and not self.follow and before is not None and len(before) == height > 1:
            # The text stays: only the badge on the last line and the scroll bar's column can change.
            self.refresh(Region(0, height - 1, width, 1), Region(width - 1, 0, 1, height))
        else:
            self.refresh()

    def _tell(self) -> None:
        """Tell what is different since the last time."""
        model = self._model
        if model.unseen != self._told_unseen:
            self._told_unseen = model.unseen
            self.post_message(UnseenChanged(self, model.unseen))
        error = model.store.first_error
        if error != self._told_error:
            self._told_error = error
            entry = None if error is None else model.store.entry(error)
            if entry != self._told_error_entry:
                self._told_error_entry = entry
                self.post_message(FirstErrorChanged(self, entry))
        low, high = model.selected_rows()
        if (model.cursor, high - low) != self._told_cursor:
            self._told_cursor = (model.cursor, high - low)
            entry = None if model.cursor is None else model.store.entry(model.cursor)
            self.post_message(CursorMoved(self, entry, high - low))
