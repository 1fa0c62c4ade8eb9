"""A log view with follow, filters, folds and search, for logs of any length at the cost of one screen.

``LogView`` is the widget: keys, mouse, messages, and when to paint. Its model holds the lines and positions,
its viewport has the rows on the screen and the moves of the cursor, its renderer draws them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern
from tui.text.sanitize import clip
from tui.widgets.log_view.gutter import CLOCKS, TimeColumn
from tui.widgets.log_view.layout import ScrollPosition, thumb
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.messages import GapRetryRequested, MatchChanged, StatusChanged
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.renderer import Geometry, LogRenderer
from tui.widgets.log_view.search import LogSearch, TimeBudget
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.viewport import Viewport
from tui.widgets.tones import series_classes, series_css

REFRESH_INTERVAL_S = 0.05
"""Minimum interval between paints; faster updates cost time and are not visible."""
RELATIVE_TICK_S = 5.0
"""Update interval of ages while they are shown."""
WHEEL_LINES = 3

_STYLES = (
    *("text", "time", "error", "warning", "debug", "gap"),
    *("match", "current-match", "badge", "empty", "thumb", "track", "cursor", "selected", "bookmark", "fold"),
)
_THUMB = "┃"
_TRACK = "│"


class LogView(Widget, can_focus=True):
    """Shows log lines and gap markers in time order.

    Follows the end until the user scrolls up. From then on the visible text stays in place and a badge
    counts new lines. Only visible lines are laid out and styled. Lines are stored as columns; beyond
    the limit of its store, older ones move to a temporary file, where they can still be read, searched
    and filtered.
    """

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"log-view--{name}" for name in _STYLES),
        *series_classes("log-view--node"),
    }

    DEFAULT_CSS = """
    LogView {
        width: 1fr;
        height: 1fr;
        min-height: 1;
        & > .log-view--time { color: $text-muted; }
        & > .log-view--debug { color: $text-muted; }
        & > .log-view--error { color: $text-error; }
        & > .log-view--warning { color: $text-warning; }
        & > .log-view--gap { color: $text-warning; background: $warning 10%; text-style: italic; }
        & > .log-view--cursor { background: $foreground 8%; }
        & > .log-view--selected { background: $primary 30%; }
        & > .log-view--bookmark { color: $accent; }
        & > .log-view--fold { color: $text-muted; text-style: italic; }
        & > .log-view--match { text-style: underline bold; }
        & > .log-view--current-match { text-style: reverse bold; }
        & > .log-view--badge { text-style: reverse; }
        & > .log-view--empty { color: $text-muted; text-style: italic; }
        & > .log-view--track { color: $foreground 12%; }
        & > .log-view--thumb { color: $foreground 40%; }
        &:focus > .log-view--thumb { color: $primary; }
        &:focus > .log-view--cursor { background: $foreground 14%; }
        &:ansi > .log-view--gap { background: ansi_default; }
        &:ansi > .log-view--cursor { background: ansi_default; text-style: bold; }
        &:ansi > .log-view--selected { background: ansi_default; text-style: reverse; }
        &:ansi > .log-view--track { color: ansi_bright_black; }
        &:ansi > .log-view--thumb { color: ansi_default; }
    }
    """ + series_css("LogView", "log-view--node")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move_cursor(1)", "Down", show=False, id="log.down"),
        Binding("up,k", "move_cursor(-1)", "Up", show=False, id="log.up"),
        Binding("shift+down,J", "extend_selection(1)", "Select down", show=False, id="log.select_down"),
        Binding("shift+up,K", "extend_selection(-1)", "Select up", show=False, id="log.select_up"),
        Binding(
            "pagedown,space,ctrl+d,ctrl+f", "scroll_pages(1)", "Page down", show=False, id="log.page_down"
        ),
        Binding("pageup,ctrl+u,ctrl+b", "scroll_pages(-1)", "Page up", show=False, id="log.page_up"),
        Binding("home,g", "first", "First line", show=False, id="log.first"),
        Binding("end,G", "last", "Last line, follow", show=False, id="log.last"),
        Binding("left", "pan(-1)", "Left", show=False, id="log.left"),
        Binding("right", "pan(1)", "Right", show=False, id="log.right"),
        Binding("enter", "open_row", "Open", show=False, id="log.open"),
    ]

    def __init__(
        self,
        *,
        store: LogStore | None = None,
        options: LogOptions | None = None,
        timezone: tzinfo | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
        id: str | None = None,
    ) -> None:
        """Create a view that follows.

        Args:
            store: Lines to show, possibly shared with other views; a new store if None.
            options: What to show of them.
            timezone: Time zone for times of day; the system's if None.
            monotonic_s: Monotonic clock in seconds, for intervals.
            id: Widget ID.
        """
        super().__init__(id=id)
        options = options or LogOptions()
        self._monotonic_s = monotonic_s
        self._model = LogModel(store or LogStore(options.max_lines), options, self._lines_changed)
        self._times = TimeColumn(time.time, timezone)
        self._styles: dict[str, Style] = {}
        self._renderer = LogRenderer(self._times, self._style)
        self._viewport = Viewport(self._model, self._renderer)
        self._pan = 0
        self._refreshed_s = float("-inf")
        self._refresh_timer: Timer | None = None
        self._relative_timer: Timer | None = None
        self._is_building = self._is_dragging = self._is_selecting = False
        self._reported_total: int | None = None
        self._reported_status: tuple[bool, int, LineKey | None] = (True, 0, None)

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
    def only_day(self) -> str:
        """The date of all lines if times of day don't show it; empty for today or several days."""
        span_ns = self._model.store.span_ns
        return self._times.only_day(*span_ns) if span_ns is not None and self.options.time in CLOCKS else ""

    @property
    def is_settled(self) -> bool:
        return self._model.rows.is_complete

    @property
    def unseen(self) -> int:
        """Rows added at the end since following stopped."""
        return self._model.unseen

    @property
    def first_error(self) -> LogEntry | None:
        """The oldest error line of all nodes, regardless of the filter."""
        key = self._model.store.first_error
        return None if key is None else self._model.store.entry(key)

    @property
    def cursor_entry(self) -> LogEntry | None:
        """The cursor line; the newest line while following; None if the log is empty."""
        row = self._viewport.own_row()
        return None if row is None else self._model.store.entry(self._model.row_key(row).shown)

    def selected_entries(self) -> list[LogEntry]:
        """Return the selected lines, else the cursor line (the newest one while following)."""
        model = self._model
        if model.cursor is None:
            entry = self.cursor_entry
            return [] if entry is None else [entry]
        return model.selected_entries()

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Append newer entries; late ones are inserted by time."""
        self._model.store.append(entries)

    def prepend(self, entries: Sequence[LogEntry]) -> int:
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
        """Remove all entries and the start of elapsed time; options and search stay."""
        self._times.origin_ns = None
        self._model.store.clear()

    def set_origin(self, time_ns: int) -> None:
        """Set the start of elapsed time, such as the job's start; the default is the first line."""
        self._times.origin_ns = time_ns
        self._renderer.forget()
        self._schedule_refresh()

    # --- options ------------------------------------------------------------------------------

    @property
    def options(self) -> LogOptions:
        return self._model.options

    @options.setter
    def options(self, options: LogOptions) -> None:
        """Show the log in another way. The newest lines appear first; the cursor stays on its line."""
        before = self._model.options
        if (options.filters, options.folds) != (before.filters, before.folds):
            self._viewport.keep_line()
            self._model.options = options
            self._build()
            self._count_matches()
        self._model.options = options
        if options.wrap != before.wrap:
            self._pan = 0
            self._model.go(ScrollPosition(self._model.top.row))
        if options.time != before.time:
            self._show_times(options)
        self._fit()
        self._paint()

    def _show_times(self, options: LogOptions) -> None:
        self._times.mode = options.time
        if self._relative_timer is not None:
            self._relative_timer.stop()
            self._relative_timer = None
        if options.time == "relative" and self.is_attached:
            self._relative_timer = self.set_interval(RELATIVE_TICK_S, self._age)
        self._update_time_span()
        self._renderer.forget()

    def _age(self) -> None:
        self._renderer.forget()
        self._schedule_refresh()

    @property
    def follow(self) -> bool:
        """True to keep the end visible as lines arrive. Stopping puts the cursor on the last line."""
        return self._viewport.follow

    @follow.setter
    def follow(self, follow: bool) -> None:
        self._viewport.follow = follow
        self._paint()

    def action_toggle_follow(self) -> None:
        self.follow = not self.follow

    # --- arriving lines -----------------------------------------------------------------------

    def on_mount(self) -> None:
        """Build the rows: a shared store may already hold lines."""
        self._show_times(self.options)
        self._build()

    def _lines_changed(self) -> None:
        if self._times.origin_ns is None and self._model.store.span_ns is not None:
            self._times.origin_ns = self._model.store.span_ns[0]
        self._update_time_span()
        if self._model.rows.is_complete:
            self._schedule_refresh()
        else:
            self._build()

    def _update_time_span(self) -> None:
        span_ns = self._model.store.span_ns
        if span_ns is not None and self._times.update_time_span(*span_ns):
            self._renderer.forget()

    def _build(self) -> None:
        """Filter and fold for one slice; continue after the next turn of the event loop if there is more."""
        if not self.is_attached or self._is_building:
            return
        if not self._model.build(TimeBudget(self._monotonic_s)):
            self._is_building = True
            # Not a message: queued messages are handled without yielding to other tasks.
            asyncio.get_running_loop().call_soon(self._continue_build)
        else:
            self._viewport.restore_line()
        self._schedule_refresh()

    def _continue_build(self) -> None:
        self._is_building = False
        self._build()

    # --- painting -----------------------------------------------------------------------------

    def flush(self) -> None:
        if self._refresh_timer is not None:
            self._paint()

    def _schedule_refresh(self) -> None:
        """Schedule a paint, at most one per ``REFRESH_INTERVAL_S``."""
        self._viewport.invalidate()
        if self._refresh_timer is not None or not self.is_attached:
            return
        wait_s = self._refreshed_s + REFRESH_INTERVAL_S - self._monotonic_s()
        if wait_s <= 0:
            self._paint()
        else:
            self._refresh_timer = self.set_timer(wait_s, self._paint)

    def _paint(self) -> None:
        if self._refresh_timer is not None:
            self._refresh_timer.stop()
            self._refresh_timer = None
        self._refreshed_s = self._monotonic_s()
        self._viewport.invalidate()
        self._post_changes()
        self.refresh()

    def _post_changes(self) -> None:
        model = self._model
        status = (model.following, model.unseen, model.store.first_error)
        if status != self._reported_status:
            self._reported_status = status
            self.post_message(StatusChanged())
        search = model.search
        if search is not None and self._reported_total is not None:
            if not search.is_final:
                self._count_matches()
            elif search.total != self._reported_total:
                self._report_matches()

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = self.get_component_rich_style(f"log-view--{name}")
        return style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()
        self._renderer.forget()

    def _fit(self) -> None:
        if self.is_attached:
            width, self._viewport.height = self.size
            pattern = self._model.search.pattern if self._model.search is not None else None
            colours = not self.app.no_color
            self._renderer.set_geometry(
                Geometry(max(1, width - 1), self.options.wrap, self._pan, pattern, colours)
            )
            self._viewport.invalidate()

    def on_resize(self) -> None:
        self._fit()
        self.refresh()  # a paint between the resize and this event used the old page

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render the lines of a region.

        Check the size first, because Textual can change it without a resize event.
        """
        if (self._renderer.geometry.width + 1, self._viewport.height) != self.size:
            self.on_resize()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        page, model, width = self._viewport.page(), self._model, self._renderer.geometry.width
        if y < len(page):
            row = page[y].row
            segments = self._renderer.line(
                model.store, model.row_key(row), page[y].line, model.row_flags(row)
            )
        elif not page and y == self._viewport.height // 2:
            segments = self._empty(width)
        else:
            segments = [Segment(" " * width, self._style("text"))]
        if model.unseen and y == self._viewport.height - 1:
            badge = clip(self._badge(), width)
            segments = [*Strip(segments).crop(0, width - len(badge)), Segment(badge, self._style("badge"))]
        return Strip([*segments, self._scroll_bar(y, page)], width + 1)

    def _badge(self) -> str:
        return f" ↓ {self._model.unseen:,} new "

    def _scroll_bar(self, y: int, page: list[ScrollPosition]) -> Segment:
        shown = page[-1].row - page[0].row + 1 if page else 0
        start, length = thumb(len(self._model), page[0].row if page else 0, shown, self._viewport.height)
        if not length:
            return Segment(" ", self._style("text"))
        if start <= y < start + length:
            return Segment(_THUMB, self._style("thumb"))
        return Segment(_TRACK, self._style("track"))

    def _empty(self, width: int) -> list[Segment]:
        if not self._model.rows.is_complete:
            text = "Filtering…"
        elif len(self._model.store):
            text = "No lines match the filter."
        else:
            text = "No log lines yet."
        text = clip(text, width)
        left = (width - cell_len(text)) // 2
        return [
            Segment(" " * left + text, self._style("empty")),
            Segment(" " * (width - left - cell_len(text)), self._style("text")),
        ]

    # --- cursor and scrolling -----------------------------------------------------------------

    def action_move_cursor(self, rows: int) -> None:
        self._model.clear_selection()
        self._viewport.move_cursor(rows)
        self._paint()

    def action_extend_selection(self, rows: int) -> None:
        self._viewport.move_cursor(rows, extend=True)
        self._paint()

    def clear_selection(self) -> bool:
        had = self._model.has_selection
        self._model.clear_selection()
        self._paint()
        return had

    def action_open_row(self) -> None:
        """Retry the lines of a gap, toggle a fold, or expand an object."""
        entry = self.cursor_entry
        if isinstance(entry, LogGap):
            self.post_message(GapRetryRequested(entry))
        elif self._viewport.toggle_fold():
            self._paint()
        else:
            self.notify("Nothing to expand on this line.", timeout=3)

    def action_scroll_lines(self, lines: int) -> None:
        self._viewport.scroll(lines)
        self._paint()

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by a number of screens, keeping one line of overlap."""
        self.action_scroll_lines(pages * max(1, self._viewport.height - 1))

    def action_first(self) -> None:
        self._viewport.show_from_row(0)
        self._paint()

    def action_last(self) -> None:
        """Go to the newest line and follow."""
        self.follow = True

    def action_pan(self, steps: int) -> None:
        """Shift long lines by a quarter of the width, at most to the end of the longest visible line."""
        if not self.options.wrap:
            self._pan = self._viewport.panned(self._pan, steps)
            self._fit()
            self._paint()

    # --- search -------------------------------------------------------------------------------

    def find(self, pattern: LogPattern | None, *, backwards: bool = False) -> None:
        """Highlight a pattern and go to the nearest match; None ends the search.

        The search wraps around the ends. ``MatchChanged`` is posted when the nearest match is known, and
        again as matches are counted.
        """
        self._model.begin_search(pattern or None)
        self._reported_total = None
        self._fit()
        self._paint()
        # While following, the newest match is the nearest one.
        self._find_next(backwards=backwards or self.follow, include_own=True)

    def action_next_match(self) -> None:
        self._find_next(backwards=False, include_own=False)

    def action_previous_match(self) -> None:
        self._find_next(backwards=True, include_own=False)

    def _find_next(self, *, backwards: bool, include_own: bool) -> None:
        search = self._model.search
        if search is None:
            self.workers.cancel_group(self, "search")
            return
        self._model.search_from_cursor(backwards=backwards, include_own=include_own)
        work = self._run_search(search)
        self.run_worker(work, group="search", description="search the log", exclusive=True)

    async def _run_search(self, search: LogSearch) -> None:
        found = await search.find(self._monotonic_s)
        if found is not None:
            self._viewport.seek(found)
            self._paint()
        if not search.is_final:
            self._report_matches()
        await search.count_all(self._monotonic_s, self._report_matches)

    def _count_matches(self) -> None:
        if self._model.search is not None and not any(
            worker.group == "search" and worker.node is self and not worker.is_finished
            for worker in self.workers
        ):
            count = self._model.search.count_all(self._monotonic_s, self._report_matches)
            self.run_worker(count, group="search", description="count matches", exclusive=True)

    def _report_matches(self) -> None:
        search = self._model.search
        if search is None:
            return
        self._reported_total = search.total
        self.post_message(
            MatchChanged(
                search.pattern,
                None if search.found is None else self._model.store.entry(search.found),
                position=search.position,
                total=search.total,
                total_is_final=search.is_final,
                wrapped=search.wrapped,
            )
        )

    # --- errors, times, bookmarks -------------------------------------------------------------

    def go_to_first_error(self) -> bool:
        """Go to the oldest error line; return False if there is none or the filter hides it."""
        return self._go_to(self._model.store.first_error)

    def next_error(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) error line; return False if there is none."""
        return self._go_to(self._model.next_error(backwards=backwards))

    def go_to_bookmark(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) bookmark, wrapping around; return False if there is none."""
        return self._go_to(self._model.next_bookmark(backwards=backwards))

    def _go_to(self, key: LineKey | None) -> bool:
        if key is None or not self._model.passes(key):
            return False
        self._viewport.seek(key)
        self._paint()
        return True

    def toggle_bookmark(self) -> bool | None:
        """Toggle the bookmark on the cursor line; return True if it is now set, None if there is no line."""
        row = self._viewport.own_row()
        if row is None:
            return None
        is_marked = self._model.store.toggle_bookmark(self._model.rows.key(row))
        self._paint()
        return is_marked

    def go_to_time(self, time_ns: int) -> None:
        """Go to the first row at or after a time (epoch nanoseconds), else to the last row."""
        self._viewport.go_to_time(time_ns)
        self._paint()

    def jump(self, seconds: float) -> None:
        """Move the cursor forward in time, or back if `seconds` is negative."""
        self._viewport.jump(seconds)
        self._paint()

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
        width, height = self.size
        if event.x == width - 1:
            self._is_dragging = True
            self._viewport.drag_to(event.y)
        elif self.unseen and event.y == height - 1 and event.x >= width - 1 - len(self._badge()):
            self._viewport.follow = True
        else:
            self._is_selecting = self._viewport.select_line(event.y, extend=event.shift)
        if self._is_dragging or self._is_selecting:
            self.capture_mouse()
        self._paint()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._is_dragging:
            self._viewport.drag_to(event.y)
            self._paint()
        elif self._is_selecting:
            self._viewport.select_line(max(0, min(event.y, self.size.height - 1)), extend=True)
            self._paint()

    def on_mouse_up(self) -> None:
        if self._is_dragging or self._is_selecting:
            self._is_dragging = self._is_selecting = False
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2 and event.x < self.size.width - 1:
            self.action_open_row()
