"""The screen side of a log view: which lines are on it, when it is painted, and how."""

from __future__ import annotations

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

from api_client.streams.records import LogEntry
from tui.insight.text import clip, inert
from tui.widgets.log_view.gutter import NodeLabels, TimeColumn
from tui.widgets.log_view.layout import Layout
from tui.widgets.log_view.messages import UnseenChanged
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.painter import Painter, View
from tui.widgets.log_view.store import DEFAULT_MAX_LINES
from tui.widgets.log_view.viewport import Place, last_page, page_from, thumb
from tui.widgets.palette import series_classes, series_css

PAINT_INTERVAL_S = 0.05
"""Under load the view paints this often: more is not seen, and costs."""

_STYLES = (
    *("text", "time", "error", "warning", "debug", "gap"),
    *("match", "current-match", "badge", "empty", "thumb", "track"),
)
_THUMB = "┃"
_TRACK = "│"


class LogCanvas(Widget):
    """Paints the lines of a `LogModel`: at most twenty times a second, and only what is on the screen."""

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"log-view--{name}" for name in _STYLES),
        *series_classes("log-view--node"),
    }

    DEFAULT_CSS = """
    LogCanvas {
        width: 1fr;
        height: 1fr;
        min-height: 1;
        & > .log-view--time { color: $text-muted; }
        & > .log-view--debug { color: $text-muted; }
        & > .log-view--error { color: $text-error; }
        & > .log-view--warning { color: $text-warning; }
        & > .log-view--gap { color: $text-warning; text-style: italic; }
        & > .log-view--match { text-style: underline bold; }
        & > .log-view--current-match { text-style: reverse bold; }
        & > .log-view--badge { text-style: reverse; }
        & > .log-view--empty { color: $text-muted; text-style: italic; }
        & > .log-view--track { color: $foreground 12%; }
        & > .log-view--thumb { color: $foreground 40%; }
        &:focus > .log-view--thumb { color: $primary; }
        &:ansi > .log-view--track { color: ansi_bright_black; }
        &:ansi > .log-view--thumb { color: ansi_default; }
    }
    """ + series_css("LogCanvas", "log-view--node")

    follow: reactive[bool] = reactive(True, repaint=False, init=False)
    """Whether the end stays in sight as lines come."""

    wrap: reactive[bool] = reactive(False, repaint=False)
    """Whether long lines go on below, instead of to the right."""

    def __init__(
        self,
        *,
        max_lines: int = DEFAULT_MAX_LINES,
        timezone: tzinfo | None = None,
        now_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
        empty_text: str = "no log lines yet",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Make an empty view that follows.

        Args:
            max_lines: how many entries are held; the oldest go first.
            timezone: for times of day; the machine's own when None.
            now_s: the wall clock, epoch seconds, for ages.
            monotonic_s: a clock for intervals, in seconds.
            empty_text: what to say while there is no entry.
            name: the widget's name.
            id: its id.
            classes: its style classes.
        """
        super().__init__(name=name, id=id, classes=classes)
        self.empty_text = empty_text
        self._model = LogModel(max_lines)
        self._times = TimeColumn(now_s, timezone)
        self._layout = Layout()
        self._resolved: dict[str, Style] = {}
        self._painter = Painter(self._layout, NodeLabels(), self._times, self._style)
        self._width = self._height = 0  # the size, which is asked for too often to be worked out each time
        self._pan = 0
        self._needle = ""
        self._page: list[Place] | None = None
        self._monotonic_s = monotonic_s
        self._painted_s = float("-inf")
        self._paint_timer: Timer | None = None
        self._told_unseen = 0

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
        unseen = self._model.unseen
        if unseen != self._told_unseen:
            self._told_unseen = unseen
            self.post_message(UnseenChanged(self, unseen))
        width, height = self._width, self._height
        if end_only and not self.follow and before is not None and len(before) == height > 1:
            # The text stays: only the badge on the last line and the scroll bar's column can change.
            self.refresh(Region(0, height - 1, width, 1), Region(width - 1, 0, 1, height))
        else:
            self.refresh()

    # --- where --------------------------------------------------------------------------------

    def _lines_of(self, entry: LogEntry) -> int:
        return len(self._layout.rows(entry))

    def _text_width(self) -> int:
        """Cells of a line without the scroll bar."""
        return max(1, self._width - 1)

    def _text_cells(self) -> int:
        """Cells of a line's message."""
        return max(1, self._text_width() - self._painter.gutter_cells)

    def _lay_out(self) -> None:
        """Take over width, wrapping, panning and search."""
        self._layout.set_wrap(self._text_cells() if self.wrap else None)
        self._painter.set_view(View(self._text_width(), self._pan, self._needle))

    def _current_page(self) -> list[Place]:
        """The places on the screen; also settles where the top is when the end is in sight."""
        if self._page is None:
            model, height = self._model, self._height
            if self.follow:
                model.top = last_page(model.rows, height, self._lines_of)
            page = page_from(model.rows, model.top, height, self._lines_of)
            if len(page) < height and model.top != Place():
                model.top = last_page(model.rows, height, self._lines_of)
                page = page_from(model.rows, model.top, height, self._lines_of)
            if self._painter.learn(model.rows[place.row] for place in page):
                # A longer label than all before moves every line's text, and where it wraps.
                self._painter.forget()
                self._lay_out()
                return self._current_page()
            self._page = page
        return self._page

    # --- how ----------------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        style = self._resolved.get(name)
        if style is None:
            style = self._resolved[name] = self.get_component_rich_style(f"log-view--{name}")
        return style

    def notify_style_update(self) -> None:
        """Colours may have changed with the theme or the focus."""
        super().notify_style_update()
        self._resolved.clear()
        self._painter.forget()

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self._width, self._height = self.size
        self._lay_out()
        self._page = None
        self.refresh()  # what was painted between the new size and this event was of the old page

    def _badge(self) -> str:
        return f" ↓ {self._model.unseen:,} new "

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        page, model, width = self._current_page(), self._model, self._text_width()
        if y < len(page):
            place = page[y]
            segments = self._painter.line(model.rows[place.row], place.line, place.row == model.match)
        elif not page and y == self._height // 2:
            segments = self._empty(width)
        else:
            segments = [Segment(" " * width, self._style("text"))]
        if model.unseen and y == self._height - 1:
            badge = clip(self._badge(), width)
            segments = [*Strip(segments).crop(0, width - len(badge)), Segment(badge, self._style("badge"))]
        return Strip([*segments, self._scroll_bar(y, page)], width + 1)

    def _scroll_bar(self, y: int, page: list[Place]) -> Segment:
        shown = page[-1].row - page[0].row + 1 if page else 0
        start, length = thumb(len(self._model.rows), self._model.top.row, shown, self._height)
        if not length:
            return Segment(" ", self._style("text"))
        if start <= y < start + length:
            return Segment(_THUMB, self._style("thumb"))
        return Segment(_TRACK, self._style("track"))

    def _empty(self, width: int) -> list[Segment]:
        if not self._model.visible.is_complete:
            text = "filtering …"
        elif len(self._model.store):
            text = "no line passes the filter"
        else:
            text = self.empty_text
        text = clip(inert(text), width)
        left = (width - cell_len(text)) // 2
        return [
            Segment(" " * left + text, self._style("empty")),
            Segment(" " * (width - left - cell_len(text)), self._style("text")),
        ]
