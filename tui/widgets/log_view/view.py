"""A log that is followed, filtered, searched and read: of any length, at the cost of one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual import events
from textual.reactive import reactive
from textual.timer import Timer

from api_client.models.logs import LogEntry, LogGap
from tui.widgets.log_view import messages
from tui.widgets.log_view.folds import FoldKinds
from tui.widgets.log_view.gutter import CLOCKS, TIME_MODES, TimeMode
from tui.widgets.log_view.layout import Place
from tui.widgets.log_view.search import LogFinder
from tui.widgets.log_view.store import LogStore

RELATIVE_TICK_S = 5.0
"""How often ages are brought up to date while they are shown."""

WHEEL_LINES = 3


class LogView(LogFinder):
    """Shows log lines and gap markers in time order.

    Follows the end until the reader moves up; from then on the text under the reader stays where it
    is, whatever comes, and a badge counts what is new. Only what is on the screen is laid out and
    styled. Lines are kept as columns; beyond `max_lines` the older ones are in a temporary file, and
    still there to be read, searched and filtered.
    """

    FollowChanged = messages.FollowChanged
    UnseenChanged = messages.UnseenChanged
    MatchChanged = messages.MatchChanged
    OldestReached = messages.OldestReached
    FirstErrorChanged = messages.FirstErrorChanged
    GapRetryRequested = messages.GapRetryRequested
    CursorMoved = messages.CursorMoved

    time_mode: reactive[TimeMode] = reactive[TimeMode]("clock", repaint=False)
    """What stands in the time column."""

    fold_tracebacks: reactive[bool] = reactive(True, repaint=False, init=False)
    """Whether a traceback is shown as one row: what went wrong."""

    collapse_progress: reactive[bool] = reactive(True, repaint=False, init=False)
    """Whether the states of a progress bar are shown as one row: the last."""

    fold_repeats: reactive[bool] = reactive(True, repaint=False, init=False)
    """Whether one banner of many ranks is shown as one row."""

    _dragging = False
    _selecting = False
    _relative_timer: Timer | None = None

    # --- data ---------------------------------------------------------------------------------

    @property
    def store(self) -> LogStore:
        """The lines, for other views of the same."""
        return self._model.store

    @property
    def line_count(self) -> int:
        """Entries held, shown or not."""
        return len(self._model.store)

    @property
    def shown_count(self) -> int:
        """Rows that are shown: entries that pass the filter, folded ones counted once."""
        return len(self._model)

    @property
    def dropped(self) -> int:
        """Entries that had to go because the file for older lines could not be written."""
        return self._model.store.dropped

    @property
    def only_day(self) -> str:
        """The day of all lines, where times of day leave it open; empty for today, or several days."""
        span_ns = self._model.store.span_ns
        return self._times.only_day(*span_ns) if span_ns is not None and self.time_mode in CLOCKS else ""

    @property
    def is_settled(self) -> bool:
        """Whether every line has been filtered and folded."""
        return self._model.visible.is_complete

    @property
    def unseen(self) -> int:
        """Shown entries that came at the end since following ended."""
        return self._model.unseen

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take newer entries; those that are late go where their time belongs."""
        self._model.store.append(entries)

    def prepend(self, entries: Sequence[LogEntry]) -> int:
        """Take older entries; returns how many."""
        self._asked_older = False
        return self._model.store.prepend(entries)

    def replace_gap(self, gap: LogGap, entries: Sequence[LogEntry]) -> bool:
        """Put what a gap was for in its place; returns whether the gap was there."""
        return self._model.store.replace_gap(gap, entries)

    def entries(self, *, filtered: bool = True) -> Iterator[LogEntry]:
        """All entries in time order, or those that pass the filter; folded ones among them.

        Ends early or skips when lines come meanwhile: take it in one turn of the event loop, or from
        a log that has ended.
        """
        return self._model.entries(filtered=filtered)

    def clear(self) -> None:
        """Forget all entries; filter, search and modes stay."""
        self._times.origin_ns = None
        self._asked_older = False
        self._model.store.clear()

    def set_origin(self, time_ns: int) -> None:
        """Say when elapsed time begins, such as the job's start; else it is the first line held."""
        self._times.origin_ns = time_ns
        self._painter.forget()
        self._paint_later()

    # --- modes --------------------------------------------------------------------------------

    def watch_follow(self, follow: bool) -> None:
        """Count anew, and tell; the reader's line is the last one when following ends."""
        model = self._model
        if not follow:
            self._current_page()
        model.following = follow
        model.unseen = 0
        model.set_cursor(None if follow else len(model) - 1)
        self.post_message(messages.FollowChanged(self, follow))
        self._paint()

    def watch_fold_tracebacks(self) -> None:
        """Fold anew."""
        self._fold()

    def watch_collapse_progress(self) -> None:
        """Fold anew."""
        self._fold()

    def watch_fold_repeats(self) -> None:
        """Fold anew."""
        self._fold()

    def _fold(self) -> None:
        kinds = FoldKinds(self.fold_tracebacks, self.collapse_progress, self.fold_repeats)
        if kinds != self._model.visible.kinds:
            self._keep_line()
            self._model.set_kinds(kinds)
            self._build()

    def action_next_time_mode(self) -> None:
        """Show times in the next of the ways there are."""
        self.time_mode = TIME_MODES[(TIME_MODES.index(self.time_mode) + 1) % len(TIME_MODES)]

    def watch_time_mode(self, mode: TimeMode) -> None:
        """Show times differently; ages need bringing up to date now and then."""
        self._times.mode = mode
        if self._relative_timer is not None:
            self._relative_timer.stop()
            self._relative_timer = None
        if mode == "relative":
            self._relative_timer = self.set_interval(RELATIVE_TICK_S, self._age)
        self._learn_span()
        self._painter.forget()
        self._lay_out()
        self._paint()

    def _age(self) -> None:
        self._painter.forget()
        self._paint_later()

    # --- mouse --------------------------------------------------------------------------------

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.action_scroll_lines(WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.action_scroll_lines(-WHEEL_LINES)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Pan right."""
        event.stop()
        self.action_pan(1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Pan left."""
        event.stop()
        self.action_pan(-1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the scroll bar, follow by the badge, or make a line one's own."""
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
        """Drag the scroll bar, or select lines."""
        if self._dragging:
            self._drag_to(event.y)
        elif self._selecting:
            self._take_line(max(0, min(event.y, self._height - 1)), extend=True)

    def on_mouse_up(self) -> None:
        """Let go."""
        if self._dragging or self._selecting:
            self._dragging = self._selecting = False
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """A double click opens what enter opens."""
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
            self._read_at(Place(round(max(0, y) / last_line * (len(self._model) - 1))))
