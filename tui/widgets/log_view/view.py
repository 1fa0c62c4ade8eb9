"""The log widget, with follow, filters, folds and search; its cost does not depend on the log's length.

``LogView`` handles keys, the mouse and repainting. The rest is done by other objects: ``LogStore`` holds the
lines, ``LogModel`` the rows and positions, ``Viewport`` moves the cursor and scrolls, ``LogFinder`` searches,
and ``LogRenderer`` draws.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import ClassVar

from rich.style import Style
from textual import events, on
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from api_client.models.logs import LogGap
from tui.analysis.logs.not_kept import NotKept
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.components import CachedComponentStyles
from tui.widgets.log_view.gutter import CLOCK_MODES, TimeColumn
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.model import LogModel, ScrollPosition
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.renderer import LogRenderer, RenderSettings
from tui.widgets.log_view.search import LogFinder, TimeBudget
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.viewport import Viewport
from tui.widgets.tones import SERIES

PAINT_DELAY_S = 0.05
"""Delay before new lines are painted, so that a burst of lines needs few paints."""
QUIET_S = 0.25
"""If nothing was painted for this long, new lines are painted without ``PAINT_DELAY_S``."""
WHEEL_LINES = 3

_STYLES = (
    *("text", "time", "error", "warning", "debug", "gap"),
    *("bar", "path", "name", "number"),
    *("match", "current-match", "badge", "empty", "thumb", "track", "cursor", "selected", "bookmark", "fold"),
)


class StatusChanged(Message):
    """Whether the view follows, the number of unseen rows, or the first error changed."""


@dataclass
class Moved(Message):
    """The view was scrolled, or its cursor moved."""

    view: LogView


@dataclass
class GapRetryRequested(Message):
    """The user asked to fetch the missing lines of a gap marker.

    A ``NotKept`` marker may stand for too many lines to fetch at once. Then the lines from ``from_ns`` on are
    fetched first; if it is None, the lines at the end of the gap.
    """

    gap: LogGap
    from_ns: int | None = None


class LogView(CachedComponentStyles, Widget, can_focus=True):
    """Shows log lines and gap markers in time order.

    The view follows the end of the log until the user scrolls up. Then the visible text stays in place, and a
    badge shows the number of new rows. Only visible lines are laid out and styled. The store drops the oldest
    lines beyond its limit; the marker in their place lets the user read them again.
    """

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"log-view--{name}" for name in _STYLES),
        *SERIES.classes("log-view--node"),
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
        & > .log-view--bar { color: $foreground 35%; }
        & > .log-view--name { color: $text-muted; }
        & > .log-view--number { color: $text-secondary; }
        & > .log-view--path { color: $text-primary; }
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
        &:ansi > .log-view--bar, &:ansi > .log-view--name { color: ansi_default; text-style: dim; }
        &:ansi > .log-view--number, &:ansi > .log-view--path { color: ansi_default; }
        &:ansi > .log-view--gap { background: ansi_default; }
        &:ansi > .log-view--cursor { background: ansi_default; text-style: bold; }
        &:ansi > .log-view--selected { background: ansi_default; text-style: reverse; }
        &:ansi > .log-view--track { color: ansi_bright_black; }
        &:ansi > .log-view--thumb { color: ansi_default; }
    }
    """ + SERIES.css("LogView", "log-view--node")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move_cursor(1)", "Down", show=False, id="log.down"),
        Binding("up,k", "move_cursor(-1)", "Up", show=False, id="log.up"),
        Binding("pagedown,space,ctrl+f", "scroll_pages(1)", "Page down", show=False, id="log.page_down"),
        Binding("pageup,ctrl+b", "scroll_pages(-1)", "Page up", show=False, id="log.page_up"),
        Binding("ctrl+d", "scroll_pages(0.5)", "Half a page down", show=False, id="log.half_page_down"),
        Binding("ctrl+u", "scroll_pages(-0.5)", "Half a page up", show=False, id="log.half_page_up"),
        Binding("home,g", "oldest_line", "First line", show=False, id="log.first"),
        Binding("end,G", "newest_line", "Last line, follow", show=False, id="log.last"),
        Binding("left", "pan(-1)", "Left", show=False, id="log.left"),
        Binding("right", "pan(1)", "Right", show=False, id="log.right"),
        Binding("enter", "toggle_fold", "Open", show=False, id="log.open"),
    ]

    def __init__(
        self,
        *,
        store: LogStore | None = None,
        options: LogOptions | None = None,
        timezone: tzinfo | None = None,
        now_s: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        """Create a view that follows the end of ``store``, which other views may share.

        Times of day are in ``timezone``, by default the system's; ``now_s`` is the clock for ages.
        """
        super().__init__(id=id)
        options = options or LogOptions()
        self.store = store or LogStore(options.max_lines)
        self.model = LogModel(self.store, options, self._lines_changed)
        self._times = TimeColumn(now_s, timezone)
        self._renderer = LogRenderer(self.store, self._times, self._style)
        self.viewport = Viewport(self.model, self._renderer, self._paint)
        self.finder = LogFinder(self, self.model, self.viewport)
        self._pan = 0
        self._paint_timer: Timer | None = None
        self._painted_s = -math.inf
        self._is_building = False
        self._drag_handler: Callable[[int], object] | None = None
        self._reported_status: tuple[bool, int, LineKey | None] = (True, 0, None)
        self._reported_position: tuple[bool, LineKey | None, ScrollPosition | None] = (True, None, None)

    @property
    def date_unless_today(self) -> str:
        """The date of the newest line; empty if it is today, or if the view does not show times of day."""
        span_ns = self.store.span_ns
        if span_ns is None or self.options.time not in CLOCK_MODES:
            return ""
        return self._times.date_unless_today(span_ns[1])

    def clear(self) -> None:
        """Remove all entries and reset the start of elapsed time; options and search are unchanged."""
        self._times.origin_ns = None
        self.store.clear()

    def set_origin(self, time_ns: int) -> None:
        """Set the start of elapsed time, such as the job's start; the default is the first line's time."""
        self._times.origin_ns = time_ns
        self._paint()

    # Options

    @property
    def options(self) -> LogOptions:
        return self.model.options

    @options.setter
    def options(self, options: LogOptions) -> None:
        """Change filters, folds and display. The newest lines appear first; the cursor stays on its line."""
        previous = self.model.options
        changes_rows = (options.filters, options.folds) != (previous.filters, previous.folds)
        if changes_rows:
            self.viewport.remember_cursor_line()
        self.model.options = options
        if changes_rows:
            self._build()
        if options.wrap != previous.wrap:
            self._pan = 0
            self.model.set_top(ScrollPosition(self.model.top.row))
        self._times.mode = options.time
        self._update_render_settings()
        self._paint()

    # Arriving lines

    def on_mount(self) -> None:
        self._times.mode = self.options.time
        self.set_interval(5.0, self._update_ages)
        self._build()

    def _update_ages(self) -> None:
        if self.options.time == "relative":
            self._paint()

    def _lines_changed(self) -> None:
        if self._times.origin_ns is None and self.store.span_ns is not None:
            self._times.origin_ns = self.store.span_ns[0]
        if self.model.rows.is_complete:
            self._paint_soon()
        else:
            self._build()

    def _build(self) -> None:
        """Filter and fold for one time slice; schedule the next slice, so that other tasks run in between."""
        if not self.is_attached or self._is_building:
            return
        if not self.model.rows.build(TimeBudget()):
            self._is_building = True
            # Not by posting a message: Textual handles all queued messages before other tasks run.
            asyncio.get_running_loop().call_soon(self._continue_build)
        else:
            self.viewport.restore_cursor_line()
        self._paint_soon()

    def _continue_build(self) -> None:
        self._is_building = False
        self._build()

    # Painting

    def _paint_soon(self) -> None:
        """Paint now if nothing was painted for ``QUIET_S``, else after ``PAINT_DELAY_S``."""
        self.viewport.invalidate()
        if self._paint_timer is not None or not self.is_attached:
            return
        if time.monotonic() - self._painted_s > QUIET_S:
            self._paint()
        else:
            self._paint_timer = self.set_timer(PAINT_DELAY_S, self._paint)

    def _paint(self) -> None:
        self._painted_s = time.monotonic()
        if self._paint_timer is not None:
            self._paint_timer.stop()
            self._paint_timer = None
        self.viewport.invalidate()
        if self.is_attached:
            self._post_changes()
            self.refresh()

    def _post_changes(self) -> None:
        model = self.model
        status = (model.following, model.unseen, self.store.first_error)
        if status != self._reported_status:
            self._reported_status = status
            self.post_message(StatusChanged())
        position = (True, None, None) if model.following else (False, model.cursor, model.top)
        if position != self._reported_position:
            self._reported_position = position
            self.post_message(Moved(self))
        self.finder.update()

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"log-view--{name}")

    def _update_render_settings(self) -> None:
        if self.is_attached:
            width, height = self.size
            pattern = self.finder.search.pattern if self.finder.search is not None else None
            colors = not self.app.no_color
            self._renderer.settings = RenderSettings(
                max(1, width - 1), self.options.wrap, self._pan, pattern, colors
            )
            self.viewport.resize(height)

    def on_resize(self) -> None:
        self._update_render_settings()
        self.refresh()  # the view may have been painted with the old size between the resize and this event

    def render_lines(self, crop: Region) -> list[Strip]:
        if (self._renderer.settings.width + 1, self.viewport.height) != self.size:
            self.on_resize()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        page, model, renderer = self.viewport.page(), self.model, self._renderer
        if y < len(page):
            row = page[y].row
            flags = model.row_flags(row)
            segments = renderer.line(model.row_key(row), page[y].line, flags)
        else:
            is_message = not page and y == self.viewport.height // 2
            segments = renderer.message_line(self._empty_text() if is_message else "")
        if model.unseen and y == self.viewport.height - 1:
            segments = renderer.with_badge(segments, self._badge())
        shown_rows = (page[0].row, page[-1].row) if page else (0, -1)
        bar = renderer.scroll_bar(y, self.viewport.height, len(model), *shown_rows)
        return Strip([*segments, bar], renderer.settings.width + 1)

    def _badge(self) -> str:
        return f" ↓ {self.model.unseen:,} new "

    def _empty_text(self) -> str:
        if not self.model.rows.is_complete:
            return "Filtering…"
        if not len(self.store):
            return "No log lines yet."
        filters_time_only = not replace(self.options, since_ns=None, until_ns=None).has_filter
        return "No log lines in this time range." if filters_time_only else "No lines match the filter."

    # Cursor and scrolling

    def action_move_cursor(self, rows: int) -> None:
        self.model.selection_start = None
        self.viewport.move_cursor(rows)

    def action_extend(self, rows: int) -> None:
        self.viewport.move_cursor(rows, extend=True)

    def action_toggle_fold(self) -> None:
        """Fetch the missing lines of a gap, toggle a fold, or expand the object in a message."""
        entry = self.model.cursor_entry
        if isinstance(entry, LogGap):
            self.post_message(GapRetryRequested(entry))
        elif not self.viewport.toggle_fold():
            self.notify("Nothing to expand on this line.")

    def action_scroll_pages(self, pages: float) -> None:
        self.viewport.scroll(int(pages * max(2, self.viewport.height - 1)))

    def action_oldest_line(self) -> None:
        self.viewport.put_cursor(0)
        entry = self.model.cursor_entry
        if isinstance(entry, NotKept):
            self.post_message(GapRetryRequested(entry, entry.start_ns))

    def action_newest_line(self) -> None:
        self.viewport.follow = True

    def action_toggle_follow(self) -> None:
        self.viewport.follow = not self.viewport.follow

    def action_go_to_error(self, by: int) -> None:
        if not self.viewport.next_error(backwards=by < 0):
            self.notify(f"No more errors {'above' if by < 0 else 'below'}.")

    def action_toggle_bookmark(self) -> None:
        self.viewport.toggle_bookmark()

    def action_go_to_bookmark(self, by: int) -> None:
        if not self.viewport.next_bookmark(backwards=by < 0):
            self.notify("No bookmarks yet.")

    def action_go_to_match(self, by: int) -> None:
        if self.finder.search is None:
            self.notify("No search yet.")
        self.finder.next(backwards=by < 0)

    def action_pan(self, steps: int) -> None:
        if not self.options.wrap:
            self._pan = self.viewport.panned(self._pan, steps)
            self._update_render_settings()
            self._paint()

    def find(
        self, pattern: LogPattern | None, *, backwards: bool = False, goes_to_match: bool = True
    ) -> None:
        """Highlight the matches of a pattern; if ``goes_to_match``, go to the nearest. None ends the search.

        The search continues at the other end of the log. ``MatchChanged`` is posted when all matches are
        counted, and again when lines or filters change them.
        """
        self.finder.find(pattern, backwards=backwards, goes_to_match=goes_to_match)
        self._update_render_settings()
        self._paint()

    # Mouse

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    def _scroll(self, event: events.MouseEvent) -> None:
        event.stop()
        self.viewport.scroll(WHEEL_LINES if isinstance(event, events.MouseScrollDown) else -WHEEL_LINES)

    @on(events.MouseScrollRight)
    @on(events.MouseScrollLeft)
    def _scroll_sideways(self, event: events.MouseEvent) -> None:
        event.stop()
        self.action_pan(1 if isinstance(event, events.MouseScrollRight) else -1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        viewport, (width, height) = self.viewport, self.size
        if event.x == width - 1:
            self._drag_handler = viewport.drag_to
            viewport.drag_to(event.y)
        elif self.model.unseen and event.y == height - 1 and event.x >= width - 1 - len(self._badge()):
            viewport.follow = True
        elif viewport.select_line(event.y, extend=event.shift):
            self._drag_handler = viewport.select_to_line
        if self._drag_handler is not None:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag_handler is not None:
            self._drag_handler(event.y)

    def on_mouse_up(self) -> None:
        if self._drag_handler is not None:
            self._drag_handler = None
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2 and event.x < self.size.width - 1:
            self.action_toggle_fold()
