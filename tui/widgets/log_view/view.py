"""A log that is followed, filtered, searched and read: of any length, at the cost of one screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.timer import Timer

from api_client.streams.records import LogEntry, stamp_ns
from tui.widgets.log_view import messages
from tui.widgets.log_view.canvas import LogCanvas
from tui.widgets.log_view.gutter import TIME_MODES, TimeMode
from tui.widgets.log_view.rows import LineFilter
from tui.widgets.log_view.search import find_row
from tui.widgets.log_view.viewport import Place, earlier, last_page, moved

SLICE_S = 0.008
"""Longest stretch of filtering or searching between two turns of the event loop."""

RELATIVE_TICK_S = 5.0
"""How often ages are brought up to date while they are shown."""

WHEEL_LINES = 3
_PAN_SHARE = 4  # a step to the side is a quarter of the width
_MATCH_SHARE = 3  # a match out of sight is brought to a third of the height


class LogView(LogCanvas, can_focus=True):
    """Shows log lines and gap markers in time order.

    Follows the end until the reader scrolls up; from then on the text under the reader stays where it
    is, whatever comes, and a badge counts what is new. Only what is on the screen is laid out and
    styled. It keeps references to the entries it is given, at most `max_lines` of them.
    """

    FollowChanged = messages.FollowChanged
    UnseenChanged = messages.UnseenChanged
    MatchChanged = messages.MatchChanged
    OldestReached = messages.OldestReached

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_lines(1)", "Down", show=False, id="log.down"),
        Binding("up,k", "scroll_lines(-1)", "Up", show=False, id="log.up"),
        Binding("pagedown,space", "scroll_pages(1)", "Page down", show=False, id="log.page_down"),
        Binding("pageup", "scroll_pages(-1)", "Page up", show=False, id="log.page_up"),
        Binding("home,g", "first", "First line", show=False, id="log.first"),
        Binding("end,G", "last", "Last line, follow", show=False, id="log.last"),
        Binding("left", "pan(-1)", "Left", show=False, id="log.left"),
        Binding("right", "pan(1)", "Right", show=False, id="log.right"),
    ]

    time_mode: reactive[TimeMode] = reactive[TimeMode]("clock", repaint=False)
    """What stands in the time column."""

    _asked_older = False
    _dragging = False
    _relative_timer: Timer | None = None

    # --- data ---------------------------------------------------------------------------------

    @property
    def line_count(self) -> int:
        """Entries held, shown or not."""
        return len(self._model.store)

    @property
    def shown_count(self) -> int:
        """Entries that pass the filter."""
        return len(self._model.rows)

    @property
    def dropped(self) -> int:
        """Entries that had to go because the view was full."""
        return self._model.store.dropped

    @property
    def unseen(self) -> int:
        """Shown entries that came at the end since following ended."""
        return self._model.unseen

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take newer entries; those that are late go where their time belongs."""
        if not entries:
            return
        if self._times.origin_ns is None:
            self._times.origin_ns = stamp_ns(entries[0])
        self._paint_later(end_only=self._model.append(entries, following=self.follow))

    def prepend(self, entries: Sequence[LogEntry]) -> int:
        """Take older entries (ascending); returns how many, the newest of them, there was room for."""
        accepted = self._model.prepend(entries)
        self._asked_older = False
        if accepted:
            self._build()
        return accepted

    def clear(self) -> None:
        """Forget all entries; filter, search and modes stay."""
        self._model.clear()
        self._times.origin_ns = None
        self._asked_older = False
        self._painter.forget()
        self._paint()

    def set_origin(self, time_ns: int) -> None:
        """Say when elapsed time begins, such as the job's start; else it is the first line appended."""
        self._times.origin_ns = time_ns
        self._painter.forget()
        self._paint_later()

    # --- filter and search --------------------------------------------------------------------

    @property
    def filter(self) -> LineFilter:
        """The filter in force."""
        return self._model.visible.filter

    def set_visible_nodes(self, nodes: Collection[str | None] | None) -> None:
        """Show only lines of these replicas; None shows all."""
        self._set_filter(LineFilter(None if nodes is None else frozenset(nodes), self.filter.text))

    def set_filter(self, text: str) -> None:
        """Show only lines that hold a text, whatever the case; an empty one shows all."""
        self._set_filter(LineFilter(self.filter.nodes, text))

    def _set_filter(self, wanted: LineFilter) -> None:
        if wanted != self.filter:
            self._model.set_filter(wanted)
            self._build()

    def _build(self) -> None:
        """Filter for a moment, and go on after the next turn of the event loop if there is more."""
        deadline_s = self._monotonic_s() + SLICE_S
        if not self._model.build(lambda: self._monotonic_s() < deadline_s):
            self.call_later(self._build)
        self._paint_later()

    def find(self, text: str, *, backwards: bool = False) -> None:
        """Mark a text everywhere and go to the nearest match; an empty one ends the search.

        Case does not matter; the search goes on around the ends. `MatchChanged` tells the outcome.
        """
        self._needle = text.lower()
        self._model.match = None
        self._lay_out()
        self._paint()
        # A reader who follows looks at the end: the newest match is the nearest one.
        self._search(backwards=backwards or self.follow)

    def action_next_match(self) -> None:
        """Go to the next match."""
        self._search(backwards=False)

    def action_previous_match(self) -> None:
        """Go to the match before."""
        self._search(backwards=True)

    def _search(self, *, backwards: bool) -> None:
        if not self._needle:
            return
        page, match = self._current_page(), self._model.match
        start = match if match is not None else (page[-1 if backwards else 0].row if page else 0)
        self.run_worker(
            self._go_to_match(start, backwards=backwards, include_start=match is None),
            group="search",
            description="search the log",
            exclusive=True,
        )

    async def _go_to_match(self, start: int, *, backwards: bool, include_start: bool) -> None:
        row = await find_row(
            self._model.visible,
            self._needle,
            start,
            backwards=backwards,
            include_start=include_start,
            slice_s=SLICE_S,
            monotonic_s=self._monotonic_s,
        )
        self._model.match = row
        if row is not None:
            self._show_row(row)
        entry = None if row is None else self._model.rows[row]
        self.post_message(messages.MatchChanged(self, self._needle, entry))

    def _show_row(self, row: int) -> None:
        """Scroll so that a row is in sight, unless it is."""
        if any(place.row == row for place in self._current_page()):
            self.follow = False
            self._paint()
        else:
            above = self._height // _MATCH_SHARE
            self._read_at(moved(self._model.rows, Place(row), -above, self._lines_of))

    # --- scrolling ----------------------------------------------------------------------------

    def scroll_to_time(self, time_ns: int) -> None:
        """Bring the first entry at or after a time to the top, and stop following."""
        self._read_at(Place(self._model.visible.index_at(time_ns)))

    def _read_at(self, top: Place) -> None:
        bottom = last_page(self._model.rows, self._height, self._lines_of)
        self._model.go(earlier(top, bottom))
        self.follow = False
        self._paint()

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll by so many lines; up stops following, down to the end follows again."""
        self._current_page()
        rows, before = self._model.rows, self._model.top
        top = moved(rows, before, lines, self._lines_of)
        bottom = last_page(rows, self._height, self._lines_of)
        if lines > 0 and earlier(bottom, top) == bottom:
            self.follow = True
        elif top != before:
            self._read_at(top)
        if lines < 0 and top == Place():
            self._ask_older()

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by so many screens, less a line to keep one's place."""
        self.action_scroll_lines(pages * max(1, self._height - 1))

    def action_first(self) -> None:
        """Go to the oldest line held."""
        self._read_at(Place())
        self._ask_older()

    def action_last(self) -> None:
        """Go to the newest line and follow."""
        self.follow = True

    def action_toggle_follow(self) -> None:
        """Stop following where one is, or go to the end and follow."""
        self.follow = not self.follow

    def action_toggle_wrap(self) -> None:
        """Wrap long lines, or let them run to the right."""
        self.wrap = not self.wrap

    def action_next_time_mode(self) -> None:
        """Show times in the next of the ways there are."""
        self.time_mode = TIME_MODES[(TIME_MODES.index(self.time_mode) + 1) % len(TIME_MODES)]

    def action_pan(self, steps: int) -> None:
        """Shift long lines by a quarter of the width, left or right; not beyond the longest in sight."""
        if self.wrap:
            return
        rows = self._model.rows
        step = max(1, self._text_cells() // _PAN_SHARE)
        longest = max(
            (len(self._layout.rows(rows[place.row])[place.line]) for place in self._current_page()),
            default=0,
        )
        furthest = max(self._pan, longest - step)
        self._pan = max(0, min(self._pan + steps * step, furthest))
        self._lay_out()
        self._paint()

    def _ask_older(self) -> None:
        if not self._asked_older:
            self._asked_older = True
            self.post_message(messages.OldestReached(self))

    # --- modes --------------------------------------------------------------------------------

    def watch_follow(self, follow: bool) -> None:
        """Count anew, and tell."""
        self._model.unseen = 0
        self.post_message(messages.FollowChanged(self, follow))
        self._paint()

    def watch_wrap(self) -> None:
        """Lay out anew; the reader's top line stays on top."""
        self._pan = 0
        self._model.top = Place(self._model.top.row)
        self._lay_out()
        self._paint()

    def watch_time_mode(self, mode: TimeMode) -> None:
        """Show times differently; ages need bringing up to date now and then."""
        self._times.mode = mode
        if self._relative_timer is not None:
            self._relative_timer.stop()
            self._relative_timer = None
        if mode == "relative":
            self._relative_timer = self.set_interval(RELATIVE_TICK_S, self._age)
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
        """Take hold of the scroll bar, or follow by the badge."""
        width, height = self._width, self._height
        if event.x == width - 1:
            self._dragging = True
            self.capture_mouse()
            self._drag_to(event.y)
        elif self.unseen and event.y == height - 1 and event.x >= width - 1 - len(self._badge()):
            self.follow = True

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the scroll bar."""
        if self._dragging:
            self._drag_to(event.y)

    def on_mouse_up(self) -> None:
        """Let the scroll bar go."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _drag_to(self, y: int) -> None:
        last_line = max(1, self._height - 1)
        if y >= last_line:
            self.follow = True
        else:
            self._read_at(Place(round(max(0, y) / last_line * (len(self._model.rows) - 1))))
