"""A log view with follow, filters and search, for logs of any length at the cost of one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual import events
from textual.reactive import reactive
from textual.timer import Timer

from api_client.models.logs import LogEntry, LogGap
from tui.widgets.log_view import messages
from tui.widgets.log_view.folds import FoldKinds
from tui.widgets.log_view.gutter import CLOCKS, TIME_MODES, TimeMode
from tui.widgets.log_view.layout import ScrollPosition
from tui.widgets.log_view.search import LogSearch
from tui.widgets.log_view.store import LogStore

RELATIVE_TICK_S = 5.0
"""Update interval of ages while they are shown."""

WHEEL_LINES = 3


class LogView(LogSearch):
    """Shows log lines and gap markers in time order.

    Follows the end until the user scrolls up. From then on the visible text stays in place and a badge
    counts new lines. Only visible lines are laid out and styled. Lines are stored as columns; beyond
    `max_lines`, older ones move to a temporary file, where they can still be read, searched and filtered.
    """

    FollowChanged = messages.FollowChanged
    UnseenChanged = messages.UnseenChanged
    MatchChanged = messages.MatchChanged
    OldestReached = messages.OldestReached
    FirstErrorChanged = messages.FirstErrorChanged
    GapRetryRequested = messages.GapRetryRequested
    CursorMoved = messages.CursorMoved

    time_mode: reactive[TimeMode] = reactive[TimeMode]("clock", repaint=False)

    fold_tracebacks: reactive[bool] = reactive(True, repaint=False, init=False)
    """True to show a traceback as one row with its exception."""

    collapse_progress: reactive[bool] = reactive(True, repaint=False, init=False)
    """True to show a progress bar as one row with its last state."""

    fold_repeats: reactive[bool] = reactive(True, repaint=False, init=False)
    """True to show a banner repeated by many ranks as one row."""

    _dragging = False
    _selecting = False
    _relative_timer: Timer | None = None

    # --- data ---------------------------------------------------------------------------------

    @property
    def store(self) -> LogStore:
        return self._model.store

    @property
    def line_count(self) -> int:
        return len(self._model.store)

    @property
    def shown_count(self) -> int:
        """Number of rows: entries that pass the filter, with each fold counted once."""
        return len(self._model)

    @property
    def dropped(self) -> int:
        """Number of entries dropped because the file for older lines could not be written."""
        return self._model.store.dropped

    @property
    def only_day(self) -> str:
        """The date of all lines if times of day don't show it; empty for today or several days."""
        span_ns = self._model.store.span_ns
        return self._times.only_day(*span_ns) if span_ns is not None and self.time_mode in CLOCKS else ""

    @property
    def is_settled(self) -> bool:
        return self._model.visible.is_complete

    @property
    def unseen(self) -> int:
        """Rows added at the end since following stopped."""
        return self._model.unseen

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Append newer entries; late ones are inserted by time."""
        self._model.store.append(entries)

    def prepend(self, entries: Sequence[LogEntry]) -> int:
        self._asked_older = False
        return self._model.store.prepend(entries)

    def replace_gap(self, gap: LogGap, entries: Sequence[LogEntry]) -> bool:
        return self._model.store.replace_gap(gap, entries)

    def entries(self, *, filtered: bool = True) -> Iterator[LogEntry]:
        """Yield all entries in time order, or those that pass the filter, including folded ones.

        May end early or skip entries if lines arrive meanwhile: consume it without yielding to the event
        loop, or use it only on a log that has ended.
        """
        return self._model.entries(filtered=filtered)

    def clear(self) -> None:
        """Remove all entries and the start of elapsed time; filter, search and modes stay."""
        self._times.origin_ns = None
        self._asked_older = False
        self._model.store.clear()

    def set_origin(self, time_ns: int) -> None:
        """Set the start of elapsed time, such as the job's start; the default is the first line."""
        self._times.origin_ns = time_ns
        self._renderer.forget()
        self._schedule_refresh()

    # --- modes --------------------------------------------------------------------------------

    def watch_follow(self, follow: bool) -> None:
        """Reset the count of new lines and post ``FollowChanged``.

        Leaving follow puts the cursor on the last line.
        """
        model = self._model
        if not follow:
            self._current_page()
        model.following = follow
        model.unseen = 0
        model.set_cursor(None if follow else len(model) - 1)
        self.post_message(messages.FollowChanged(self, follow))
        self._paint()

    def watch_fold_tracebacks(self) -> None:
        self._fold()

    def watch_collapse_progress(self) -> None:
        self._fold()

    def watch_fold_repeats(self) -> None:
        self._fold()

    def _fold(self) -> None:
        kinds = FoldKinds(self.fold_tracebacks, self.collapse_progress, self.fold_repeats)
        if kinds != self._model.visible.kinds:
            self._keep_line()
            self._model.set_kinds(kinds)
            self._build()

    def action_next_time_mode(self) -> None:
        self.time_mode = TIME_MODES[(TIME_MODES.index(self.time_mode) + 1) % len(TIME_MODES)]

    def watch_time_mode(self, mode: TimeMode) -> None:
        self._times.mode = mode
        if self._relative_timer is not None:
            self._relative_timer.stop()
            self._relative_timer = None
        if mode == "relative":
            self._relative_timer = self.set_interval(RELATIVE_TICK_S, self._age)
        self._update_time_span()
        self._renderer.forget()
        self._lay_out()
        self._paint()

    def _age(self) -> None:
        self._renderer.forget()
        self._schedule_refresh()

    # --- mouse --------------------------------------------------------------------------------

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll_lines(WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll_lines(-WHEEL_LINES)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.action_pan(1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.action_pan(-1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        width, height = self._width, self._height
        if event.x == width - 1:
            self._dragging = True
            self.capture_mouse()
            self._drag_to(event.y)
        elif self.unseen and event.y == height - 1 and event.x >= width - 1 - len(self._badge()):
            self.follow = True
        elif self._take_line(event.y, extend=event.shift):
            self._selecting = True
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self._drag_to(event.y)
        elif self._selecting:
            self._take_line(max(0, min(event.y, self._height - 1)), extend=True)

    def on_mouse_up(self) -> None:
        if self._dragging or self._selecting:
            self._dragging = self._selecting = False
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2 and event.x < self._width - 1:
            self.action_open_row()

    def _take_line(self, y: int, *, extend: bool) -> bool:
        page = self._current_page()
        if y >= len(page):
            return False
        row = page[y].row
        if extend and self._model.cursor_row == row:
            return True
        if self.follow:
            self.follow = False
        self._model.set_cursor(row, extend=extend)
        self._paint()
        return True

    def _drag_to(self, y: int) -> None:
        last_line = max(1, self._height - 1)
        if y >= last_line:
            self.follow = True
        else:
            self._read_at(ScrollPosition(round(max(0, y) / last_line * (len(self._model) - 1))))
