"""The drawing part of a log view: which lines are on screen, and when they are painted.

While lines arrive, it paints at most twenty times a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import tzinfo
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern
from tui.text.sanitize import clip, sanitize
from tui.widgets.log_view.gutter import NodeLabels, TimeColumn
from tui.widgets.log_view.layout import Layout, ScrollPosition, TimeBudget, last_page, moved, page_from, thumb
from tui.widgets.log_view.messages import CursorMoved, FirstErrorChanged, UnseenChanged
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.renderer import LogRenderer, RenderOptions
from tui.widgets.log_view.store import DEFAULT_MAX_LINES, LogStore
from tui.widgets.tones import series_classes, series_css

_STYLES = (
    *("text", "time", "error", "warning", "debug", "gap"),
    *("match", "current-match", "badge", "empty", "thumb", "track", "cursor", "selected", "bookmark", "fold"),
)
_THUMB = "┃"
_TRACK = "│"


class BaseLogCanvas(Widget):
    """Lays out and styles the visible lines of a `LogModel`."""

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"log-view--{name}" for name in _STYLES),
        *series_classes("log-view--node"),
    }

    DEFAULT_CSS = """
    BaseLogCanvas {
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
    """ + series_css("BaseLogCanvas", "log-view--node")

    follow: reactive[bool] = reactive(True, repaint=False, init=False)
    """True to keep the end visible as lines arrive."""

    wrap: reactive[bool] = reactive(False, repaint=False)
    """True to wrap long lines."""

    def __init__(
        self,
        *,
        store: LogStore | None = None,
        max_lines: int = DEFAULT_MAX_LINES,
        timezone: tzinfo | None = None,
        now_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
        empty_text: str = "No log lines yet.",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create an empty view that follows.

        Args:
            store: Lines to show, possibly shared with other views; a new store if None.
            max_lines: Number of lines a new store keeps in memory; older ones go to a temporary file.
            timezone: Time zone for times of day; the system's if None.
            now_s: Wall clock, epoch seconds, for ages.
            monotonic_s: Monotonic clock in seconds, for intervals.
            empty_text: Text to show if there are no entries.
            name: Widget name.
            id: Widget ID.
            classes: CSS classes.
        """
        super().__init__(name=name, id=id, classes=classes)
        self.empty_text = empty_text
        self._model = LogModel(store or LogStore(max_lines), self._on_changed)
        self._times = TimeColumn(now_s, timezone)
        self._layout = Layout()
        self._resolved: dict[str, Style] = {}
        self._renderer = LogRenderer(self._layout, NodeLabels(), self._times, self._style)
        self._width = self._height = 0  # cached: the size is read often and computed on each access
        self._pan = 0
        self._pattern: LogPattern | None = None
        self._page: list[ScrollPosition] | None = None
        self._monotonic_s = monotonic_s

    def _on_changed(self, end_only: bool, renumbered: bool) -> None:
        raise NotImplementedError

    # --- layout -------------------------------------------------------------------------------

    def _lines_of(self, row: int) -> int:
        return len(self._renderer.rows(self._model.store, self._model.face(row)))

    def _text_width(self) -> int:
        return max(1, self._width - 1)

    def _text_cells(self) -> int:
        return max(1, self._text_width() - self._renderer.gutter_cells)

    def _lay_out(self) -> None:
        wrapped_before = self._layout.wrap_cells
        self._layout.set_wrap(self._text_cells() if self.wrap else None)
        if self._layout.wrap_cells != wrapped_before:
            self._renderer.forget()
        has_colours = not self.app.no_color
        self._renderer.set_view(RenderOptions(self._text_width(), self._pan, self._pattern, has_colours))

    def _current_page(self) -> list[ScrollPosition]:
        """Return the screen lines to show. While following, also update the top of the view."""
        if self._page is None:
            model, height = self._model, self._height
            count = len(model)
            top = model.top
            if model.following:
                top = last_page(count, height, self._lines_of)
            page = page_from(count, top, height, self._lines_of)
            if len(page) < height and top != ScrollPosition():
                top = last_page(count, height, self._lines_of)
                page = page_from(count, top, height, self._lines_of)
            if model.visible.is_complete:  # until then the cursor line may just not be built yet
                model.go(top)
            if self._renderer.register_nodes(self._replicas(page)):
                # A longer label shifts every line's text and changes where it wraps.
                self._renderer.forget()
                self._lay_out()
                return self._current_page()
            self._page = page
        return self._page

    def _replicas(self, page: list[ScrollPosition]) -> set[str | None]:
        store, visible = self._model.store, self._model.visible
        words = [store.word(visible.seq(row)) for row in {place.row for place in page}]
        return {word.replica for word in words if not isinstance(word, LogGap)}

    # --- rendering ----------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        style = self._resolved.get(name)
        if style is None:
            style = self._resolved[name] = self.get_component_rich_style(f"log-view--{name}")
        return style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._resolved.clear()
        self._renderer.forget()

    def on_resize(self) -> None:
        self._width, self._height = self.size
        self._lay_out()
        self._page = None
        self.refresh()  # a paint between the resize and this event used the old page

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render the lines of a region.

        Check the size first, because Textual can change it without a resize event.
        """
        if (self._width, self._height) != self.size:
            self.on_resize()
        return super().render_lines(crop)

    def _badge(self) -> str:
        return f" ↓ {self._model.unseen:,} new "

    def render_line(self, y: int) -> Strip:
        page, model, width = self._current_page(), self._model, self._text_width()
        if y < len(page):
            place = page[y]
            segments = self._renderer.line(
                model.store, model.face(place.row), place.line, model.marks(place.row)
            )
        elif not page and y == self._height // 2:
            segments = self._empty(width)
        else:
            segments = [Segment(" " * width, self._style("text"))]
        if model.unseen and y == self._height - 1:
            badge = clip(self._badge(), width)
            segments = [*Strip(segments).crop(0, width - len(badge)), Segment(badge, self._style("badge"))]
        return Strip([*segments, self._scroll_bar(y, page)], width + 1)

    def _scroll_bar(self, y: int, page: list[ScrollPosition]) -> Segment:
        shown = page[-1].row - page[0].row + 1 if page else 0
        start, length = thumb(len(self._model), page[0].row if page else 0, shown, self._height)
        if not length:
            return Segment(" ", self._style("text"))
        if start <= y < start + length:
            return Segment(_THUMB, self._style("thumb"))
        return Segment(_TRACK, self._style("track"))

    def _empty(self, width: int) -> list[Segment]:
        if not self._model.visible.is_complete:
            text = "Filtering…"
        elif len(self._model.store):
            text = "No lines match the filter."
        else:
            text = self.empty_text
        text = clip(sanitize(text), width)
        left = (width - cell_len(text)) // 2
        return [
            Segment(" " * left + text, self._style("empty")),
            Segment(" " * (width - left - cell_len(text)), self._style("text")),
        ]


REFRESH_INTERVAL_S = 0.05
"""Minimum interval between paints; faster updates cost time and are not visible."""


class LogCanvas(BaseLogCanvas):
    """Paints a log while lines arrive and are filtered and folded, at most twenty times a second."""

    _refreshed_s = float("-inf")
    _refresh_timer: Timer | None = None
    _reported_unseen = 0
    _reported_error: int | None = None
    _reported_error_entry: LogEntry | None = None
    _reported_cursor: tuple[int | None, int] = (None, 0)
    _is_building = False
    _kept_line: int | None = None

    def on_mount(self) -> None:
        """Build the rows: a shared store may already hold lines."""
        self._build()

    def _on_changed(self, end_only: bool, renumbered: bool) -> None:
        if self._times.origin_ns is None and len(self._model.store):
            self._times.origin_ns = self._model.store.stamp(self._model.store.first)
        if renumbered:
            self._layout.forget()
            self._renderer.forget()
        self._update_time_span()
        if self._model.visible.is_complete:
            self._schedule_refresh(end_only=end_only)
        else:
            self._build()

    def _update_time_span(self) -> None:
        span_ns = self._model.store.span_ns
        if span_ns is not None and self._times.update_time_span(*span_ns) and self.is_attached:
            self._renderer.forget()
            self._lay_out()

    def _build(self) -> None:
        """Filter and fold for one slice; continue after the next turn of the event loop if there is more."""
        if not self.is_attached or self._is_building:
            return
        if not self._model.build(TimeBudget(self._monotonic_s)):
            self._is_building = True
            # Not a message: queued messages are handled without yielding to other tasks.
            asyncio.get_running_loop().call_soon(self._continue_build)
        elif self._kept_line is not None:
            self._restore_line(self._kept_line)
            self._kept_line = None
        self._schedule_refresh()

    def _keep_line(self) -> None:
        """Remember the screen line of the cursor before the rows change."""
        row = self._model.cursor_row
        if self._kept_line is None and row is not None:
            lines = [
                number for number, place in enumerate(self._current_page()) if place == ScrollPosition(row)
            ]
            self._kept_line = lines[0] if lines else None

    def _restore_line(self, line: int) -> None:
        model, row = self._model, self._model.cursor_row
        if row is not None:
            model.go(moved(len(model), ScrollPosition(row), -line, self._lines_of))
            self._page = None

    def _continue_build(self) -> None:
        self._is_building = False
        self._build()

    # --- timing -------------------------------------------------------------------------------

    def flush(self) -> None:
        if self._refresh_timer is not None:
            self._paint()

    def _schedule_refresh(self, *, end_only: bool = False) -> None:
        """Schedule a paint, at most one per ``REFRESH_INTERVAL_S``."""
        if self._refresh_timer is not None or not self.is_attached:
            self._page = None
            return
        wait_s = self._refreshed_s + REFRESH_INTERVAL_S - self._monotonic_s()
        if wait_s <= 0:
            self._paint(end_only=end_only)
        else:
            self._page = None
            self._refresh_timer = self.set_timer(wait_s, self._paint)

    def _paint(self, *, end_only: bool = False) -> None:
        if self._refresh_timer is not None:
            self._refresh_timer.stop()
            self._refresh_timer = None
        self._refreshed_s = self._monotonic_s()
        before, self._page = self._page, None
        self._post_changes()
        width, height = self._width, self._height
        if end_only and not self.follow and before is not None and len(before) == height > 1:
            # The text does not change, only the badge on the last line and the scroll bar.
            self.refresh(Region(0, height - 1, width, 1), Region(width - 1, 0, 1, height))
        else:
            self.refresh()

    def _post_changes(self) -> None:
        model = self._model
        if model.unseen != self._reported_unseen:
            self._reported_unseen = model.unseen
            self.post_message(UnseenChanged(self, model.unseen))
        error = model.store.first_error
        if error != self._reported_error:
            self._reported_error = error
            entry = None if error is None else model.store.entry(error)
            if entry != self._reported_error_entry:
                self._reported_error_entry = entry
                self.post_message(FirstErrorChanged(self, entry))
        low, high = model.selected_rows()
        if (model.cursor, high - low) != self._reported_cursor:
            self._reported_cursor = (model.cursor, high - low)
            entry = None if model.cursor is None else model.store.entry(model.cursor)
            self.post_message(CursorMoved(self, entry, high - low))
