"""The row for the time axis of a screen: lengths to choose from, and a map of the whole run."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.text import Text
from textual import events
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from tui.screens.charts.view import ChartView, drawing_words, lengths_of, range_words
from tui.widgets.charts.spec import Mark
from tui.widgets.charts.ticks import Window, XAxis, position_label
from tui.widgets.tones import tone_styles

GAP = "  "
TONES = {"good": "muted", "caution": "warn", "bad": "bad"}


@dataclass(frozen=True, slots=True)
class TimeShown:
    """Content of the row: ``first`` and ``last`` are the ends of the run, on the ``axis`` of the charts."""

    view: ChartView = field(default_factory=ChartView)
    first: float = 0.0
    last: float = 1.0
    axis: XAxis = "clock"
    marks: tuple[Mark, ...] = ()
    sign: str = "⇄"
    """Sign before the readout's time; the default means that charts and log show the same time."""
    words: tuple[str, ...] = ()
    """Other notes on the charts."""


class TimeRow(Widget):
    """Shows the time range of charts and log within the run; a click on a length or the map changes it."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    TimeRow {
        height: 1;
        padding: 0 1;
        color: $text-muted;
        & > .time-row--active { color: $primary; text-style: bold underline; }
    }
    """
    COMPONENT_CLASSES = {"time-row--active"}

    shown: var[TimeShown] = var(TimeShown())

    @dataclass
    class Chosen(Message):
        """A length, or a position on the map, was clicked."""

        window: Window

    _painted: Text | None = None

    def watch_shown(self) -> None:
        """Repaint only if the text changed: the end of a live run moves every second, rarely by a cell."""
        if self._row_text() != self._painted:
            self.refresh()

    def _lengths(self) -> tuple[Text, list[tuple[int, int, Window]]]:
        """Return the text of the lengths, and the cells of each; only the chosen one if space is scarce."""
        active = self.get_component_rich_style("time-row--active", partial=True)
        view, text = self.shown.view, Text(no_wrap=True, end="")
        lengths = lengths_of(self.shown.last - self.shown.first, self.shown.axis)
        windows = [Window(), *map(Window, lengths)]
        if view.window not in windows:
            windows.insert(0, view.window)
        texts = [range_words(window, self.shown.axis) for window in windows]
        if sum(len(words) + len(GAP) for words in texts) + 16 > self.size.width:  # minimum width of the map
            windows = [view.window]
        edges = []
        for window in windows:
            start = text.cell_len
            text.append(range_words(window, self.shown.axis), active if window == view.window else "")
            edges.append((start, text.cell_len, window))
            text.append(GAP)
        return text, edges

    def _map_cells(self) -> tuple[int, int]:
        """Return the first cell of the map, and its width."""
        before = self._lengths()[0].cell_len
        return before, max(0, self.size.width - before - self._readout().cell_len)

    def _readout(self) -> Text:
        """Return the time of the readout and the notes on the charts."""
        shown, tones = self.shown, tone_styles(self.app)
        text = Text(no_wrap=True, end="")
        if shown.view.cursor is not None:
            text.append(f"{GAP}{shown.sign} {position_label(shown.view.cursor, shown.axis)}", tones["accent"])
        words = " · ".join((*shown.words, *drawing_words(shown.view)))
        return text.append(f"{GAP}{words}") if words else text

    def render(self) -> Text:
        self._painted = self._row_text()
        return self._painted

    def _row_text(self) -> Text:
        shown, tones, (_, cells) = self.shown, tone_styles(self.app), self._map_cells()
        line = self._lengths()[0]
        start, end = shown.view.window.bounds(shown.first, shown.last)
        first, last = self._cell(start, cells), self._cell(end, cells)
        inside = ("─", "muted") if shown.view.window.span is None else ("━", "bar")
        row = [inside if first <= cell <= last else ("─", "faint") for cell in range(cells)]
        for mark in sorted(shown.marks, key=lambda mark: list(TONES).index(mark.tone)):
            if cells and shown.first <= mark.at <= shown.last:
                row[self._cell(mark.at, cells)] = (mark.sign, TONES[mark.tone])
        if cells and shown.view.cursor is not None:
            row[self._cell(shown.view.cursor, cells)] = ("┃", "accent")
        for sign, tone in row:
            line.append(sign, tones[tone])
        return line.append_text(self._readout())

    def _cell(self, at: float, cells: int) -> int:
        shown = self.shown
        part = (at - shown.first) / max(shown.last - shown.first, 1e-9)
        return max(0, min(round(part * (cells - 1)), cells - 1))

    def on_click(self, event: events.Click) -> None:
        x = event.x - self.styles.padding.left
        for start, end, window in self._lengths()[1]:
            if start <= x < end:
                self.post_message(self.Chosen(window))
        before, cells = self._map_cells()
        shown = self.shown
        if before <= x < before + cells:
            at = shown.first + (x - before) / max(1, cells - 1) * (shown.last - shown.first)
            self.post_message(self.Chosen(shown.view.window.around(at, shown.first, shown.last)))
