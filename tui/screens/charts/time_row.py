"""The time row above charts: lengths of the time range to choose from, and a map of the whole run."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.text import Text
from textual import events
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from tui.screens.charts.view import ChartView, drawing_notes, range_text, shorter_lengths
from tui.widgets.charts.spec import Mark
from tui.widgets.charts.ticks import Window, XAxis, position_label
from tui.widgets.tones import tone_styles

GAP = "  "
MARK_TONES = {"good": "muted", "caution": "warn", "bad": "bad"}
"""Tone of a mark in this row, by its tone in charts. The last entry wins if marks share a cell."""


@dataclass(frozen=True, slots=True)
class TimeRowContent:
    """Content of the row: ``first`` and ``last`` are the ends of the run, in the unit of ``axis``."""

    view: ChartView = field(default_factory=ChartView)
    first: float = 0.0
    last: float = 1.0
    axis: XAxis = "clock"
    marks: tuple[Mark, ...] = ()
    sign: str = "⇄"
    """Sign before the readout's time; the default means that charts and log show the same time."""
    notes: tuple[str, ...] = ()
    """Notes on how the charts are drawn."""


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

    content: var[TimeRowContent] = var(TimeRowContent())

    @dataclass
    class Chosen(Message):
        """A length, or a position on the map, was clicked."""

        window: Window

    _painted_text: Text | None = None

    def watch_content(self) -> None:
        """Repaint only if the text changed: a live run always grows, but rarely by a cell of the map."""
        if self._row_text() != self._painted_text:
            self.refresh()

    def _range_lengths(self) -> tuple[Text, list[tuple[int, int, Window]]]:
        """Return the text with the lengths to choose from; for each, its first cell, end cell, and window.

        Without space for all lengths, return only the chosen length.
        """
        active_style = self.get_component_rich_style("time-row--active", partial=True)
        view, text = self.content.view, Text(no_wrap=True, end="")
        lengths = shorter_lengths(self.content.last - self.content.first, self.content.axis)
        windows = [Window(), *map(Window, lengths)]
        if view.window not in windows:
            windows.insert(0, view.window)
        texts = [range_text(window, self.content.axis) for window in windows]
        map_cells = self.size.width - sum(len(length_text) + len(GAP) for length_text in texts)
        if map_cells < 16:
            windows = [view.window]
        clickable_ranges = []
        for window in windows:
            start = text.cell_len
            text.append(range_text(window, self.content.axis), active_style if window == view.window else "")
            clickable_ranges.append((start, text.cell_len, window))
            text.append(GAP)
        return text, clickable_ranges

    def _map_cells(self) -> tuple[int, int]:
        """Return the first cell of the map, and its width."""
        first_cell = self._range_lengths()[0].cell_len
        return first_cell, max(0, self.size.width - first_cell - self._readout().cell_len)

    def _readout(self) -> Text:
        """Return the time of the readout and the notes on the charts."""
        content, tones = self.content, tone_styles(self.app)
        text = Text(no_wrap=True, end="")
        if content.view.cursor is not None:
            text.append(
                f"{GAP}{content.sign} {position_label(content.view.cursor, content.axis)}", tones["accent"]
            )
        notes_text = " · ".join((*content.notes, *drawing_notes(content.view)))
        return text.append(f"{GAP}{notes_text}") if notes_text else text

    def render(self) -> Text:
        self._painted_text = self._row_text()
        return self._painted_text

    def _row_text(self) -> Text:
        content, tones, (_, cells) = self.content, tone_styles(self.app), self._map_cells()
        line = self._range_lengths()[0]
        start, end = content.view.window.bounds(content.first, content.last)
        first, last = self._cell_at(start, cells), self._cell_at(end, cells)
        range_style = ("─", "muted") if content.view.window.span is None else ("━", "bar")
        row = [range_style if first <= cell <= last else ("─", "faint") for cell in range(cells)]
        for mark in sorted(content.marks, key=lambda mark: list(MARK_TONES).index(mark.tone)):
            if cells and content.first <= mark.at <= content.last:
                row[self._cell_at(mark.at, cells)] = (mark.sign, MARK_TONES[mark.tone])
        if cells and content.view.cursor is not None:
            row[self._cell_at(content.view.cursor, cells)] = ("┃", "accent")
        for sign, tone in row:
            line.append(sign, tones[tone])
        return line.append_text(self._readout())

    def _cell_at(self, x: float, cells: int) -> int:
        """Return the cell of the map for a position on the axis."""
        content = self.content
        fraction = (x - content.first) / max(content.last - content.first, 1e-9)
        return max(0, min(round(fraction * (cells - 1)), cells - 1))

    def on_click(self, event: events.Click) -> None:
        cell = event.x - self.styles.padding.left
        for start, end, window in self._range_lengths()[1]:
            if start <= cell < end:
                self.post_message(self.Chosen(window))
        first_cell, cells = self._map_cells()
        content = self.content
        if first_cell <= cell < first_cell + cells:
            position = content.first + (cell - first_cell) / max(1, cells - 1) * (
                content.last - content.first
            )
            self.post_message(self.Chosen(content.view.window.around(position, content.first, content.last)))
