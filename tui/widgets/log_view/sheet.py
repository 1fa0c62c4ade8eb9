"""The sheet of a log view: which lines are on the screen, and how they look."""

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
from textual.widget import Widget

from api_client.streams.records import LogGap
from tui.insight.logs.pattern import LogPattern
from tui.insight.text import clip, inert
from tui.widgets.colours import series_classes, series_css
from tui.widgets.log_view.gutter import NodeLabels, TimeColumn
from tui.widgets.log_view.layout import Layout
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.painter import Painter, View
from tui.widgets.log_view.store import DEFAULT_MAX_LINES, LogStore
from tui.widgets.log_view.viewport import Place, last_page, page_from, thumb

_STYLES = (
    *("text", "time", "error", "warning", "debug", "gap"),
    *("match", "current-match", "badge", "empty", "thumb", "track", "cursor", "selected", "bookmark", "fold"),
)
_THUMB = "┃"
_TRACK = "│"


class LogSheet(Widget):
    """Lays out and styles the lines of a `LogModel`, only those that are on the screen."""

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"log-view--{name}" for name in _STYLES),
        *series_classes("log-view--node"),
    }

    DEFAULT_CSS = """
    LogSheet {
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
    """ + series_css("LogSheet", "log-view--node")

    follow: reactive[bool] = reactive(True, repaint=False, init=False)
    """Whether the end stays in sight as lines come."""

    wrap: reactive[bool] = reactive(False, repaint=False)
    """Whether long lines go on below, instead of to the right."""

    def __init__(
        self,
        *,
        store: LogStore | None = None,
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
            store: the lines to show, for several views of the same; one of its own when None.
            max_lines: how many lines an own store holds in memory; older ones go to a temporary file.
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
        self._model = LogModel(store or LogStore(max_lines), self._on_changed)
        self._times = TimeColumn(now_s, timezone)
        self._layout = Layout()
        self._resolved: dict[str, Style] = {}
        self._painter = Painter(self._layout, NodeLabels(), self._times, self._style)
        self._width = self._height = 0  # the size, which is asked for too often to be worked out each time
        self._pan = 0
        self._pattern: LogPattern | None = None
        self._page: list[Place] | None = None
        self._monotonic_s = monotonic_s

    def _on_changed(self, end_only: bool, renumbered: bool) -> None:
        """The store has other lines."""
        raise NotImplementedError

    # --- where --------------------------------------------------------------------------------

    def _lines_of(self, row: int) -> int:
        return len(self._painter.rows(self._model.store, self._model.face(row)))

    def _text_width(self) -> int:
        """Cells of a line without the scroll bar."""
        return max(1, self._width - 1)

    def _text_cells(self) -> int:
        """Cells of a line's message."""
        return max(1, self._text_width() - self._painter.gutter_cells)

    def _lay_out(self) -> None:
        """Take over width, wrapping, panning and search."""
        wrapped_before = self._layout.wrap_cells
        self._layout.set_wrap(self._text_cells() if self.wrap else None)
        if self._layout.wrap_cells != wrapped_before:
            self._painter.forget()
        has_colours = not self.app.no_color
        self._painter.set_view(View(self._text_width(), self._pan, self._pattern, has_colours))

    def _current_page(self) -> list[Place]:
        """The places on the screen; also settles where the top is when the end is in sight."""
        if self._page is None:
            model, height = self._model, self._height
            count = len(model)
            top = model.top
            if model.following:
                top = last_page(count, height, self._lines_of)
            page = page_from(count, top, height, self._lines_of)
            if len(page) < height and top != Place():
                top = last_page(count, height, self._lines_of)
                page = page_from(count, top, height, self._lines_of)
            if model.visible.is_complete:  # until then the reader's line may only not be there yet
                model.go(top)
            if self._painter.learn(self._replicas(page)):
                # A longer label than all before moves every line's text, and where it wraps.
                self._painter.forget()
                self._lay_out()
                return self._current_page()
            self._page = page
        return self._page

    def _replicas(self, page: list[Place]) -> set[str | None]:
        store, visible = self._model.store, self._model.visible
        words = [store.word(visible.seq(row)) for row in {place.row for place in page}]
        return {word.replica for word in words if not isinstance(word, LogGap)}

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

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of a region. Textual can change the size without an event, so look at it first."""
        if (self._width, self._height) != self.size:
            self.on_resize()
        return super().render_lines(crop)

    def _badge(self) -> str:
        return f" ↓ {self._model.unseen:,} new "

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        page, model, width = self._current_page(), self._model, self._text_width()
        if y < len(page):
            place = page[y]
            segments = self._painter.line(
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

    def _scroll_bar(self, y: int, page: list[Place]) -> Segment:
        shown = page[-1].row - page[0].row + 1 if page else 0
        start, length = thumb(len(self._model), page[0].row if page else 0, shown, self._height)
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
