"""Entries as styled segments, remembered, so that scrolling styles only what comes into sight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from api_client.streams.records import LogEntry, LogGap, LogLine
from tui.insight.text import clip, inert
from tui.widgets.log_view.gutter import LEVEL_SIGNS, TIME_CELLS, Level, NodeLabels, TimeColumn, level_of
from tui.widgets.log_view.layout import Layout
from tui.widgets.palette import SERIES_COLOURS

LATE_SIGN = "↶"
"""Marks a line that arrived after lines of a later time."""

_CACHED_LINES = 1024
_LEVEL_STYLES: dict[Level, str] = {"error": "error", "warning": "warning", "debug": "debug", "": "text"}


@dataclass(frozen=True, slots=True)
class View:
    """How lines are shown; a change forgets all lines.

    Attributes:
        width: cells of a line, the scroll bar not counted.
        pan: cells cut off at the left of the text.
        needle: text to mark, in lower case; empty for none.
    """

    width: int
    pan: int = 0
    needle: str = ""


class Painter:
    """Makes the segments of one screen line of an entry."""

    def __init__(
        self, layout: Layout, labels: NodeLabels, times: TimeColumn, style: Callable[[str], Style]
    ) -> None:
        self._layout = layout
        self._labels = labels
        self._times = times
        self._style = style
        self._view = View(0)
        self._lines: dict[tuple[int, int, bool], tuple[LogEntry, list[Segment]]] = {}

    @property
    def gutter_cells(self) -> int:
        """Cells before the text: time, late sign, label, level sign and what parts them."""
        label = self._labels.width
        return TIME_CELLS[self._times.mode] + 1 + (label + 1 if label else 0) + 2

    def learn(self, entries: Iterable[LogEntry]) -> bool:
        """Get to know the nodes of entries that will be shown; returns whether the gutter grew by it."""
        before = self._labels.width
        for entry in entries:
            if isinstance(entry, LogLine):
                self._labels.get(entry.replica)
        return self._labels.width != before

    def forget(self) -> None:
        """Forget all lines made, because colours, times or texts changed."""
        self._lines.clear()

    def set_view(self, view: View) -> None:
        """Show lines differently from now on."""
        if view != self._view:
            self._view = view
            self.forget()

    def line(self, entry: LogEntry, number: int, current: bool) -> list[Segment]:
        """One screen line of an entry, exactly as wide as the view; `current` marks the reader's match."""
        key = (id(entry), number, current)
        known = self._lines.get(key)
        if known is not None and known[0] is entry:
            return known[1]
        segments = self._gap(entry) if isinstance(entry, LogGap) else self._line(entry, number, current)
        if len(self._lines) >= _CACHED_LINES:
            self.forget()
        self._lines[key] = (entry, segments)
        return segments

    def _line(self, entry: LogLine, number: int, current: bool) -> list[Segment]:
        width = self._view.width
        label, colour = self._labels.get(entry.replica)
        level = level_of(entry.message, entry.level)
        text_style = self._style(_LEVEL_STYLES[level])
        muted = self._style("time")
        gutter = self.gutter_cells
        if number:
            segments = [Segment(" " * gutter, muted)]
        else:
            label_cells = self._labels.width + 1 if self._labels.width else 0
            node = self._style(f"node-{colour % SERIES_COLOURS}")
            label += " " * (label_cells - cell_len(label))
            time_text = self._times.text(entry.timestamp_ns)
            if entry.late:
                segments = [Segment(time_text, muted), Segment(LATE_SIGN, self._style("warning"))]
            else:
                segments = [Segment(f"{time_text} ", muted)]
            segments += [Segment(label, node), Segment(LEVEL_SIGNS[level] + " ", text_style)]
        rows = self._layout.rows(entry)
        text = rows[number] if number < len(rows) else ""
        segments += self._text(text, max(0, width - gutter), text_style, current)
        if gutter > width:
            return list(Strip(segments).adjust_cell_length(width, muted))
        return segments

    def _text(self, text: str, room: int, style: Style, current: bool) -> list[Segment]:
        pan = self._view.pan if self._layout.wrap_cells is None else 0
        needle = self._view.needle
        if text.isascii() and not needle:
            return [Segment(text[pan : pan + room].ljust(room), style)]
        segments = self._marked(text, style, current) if needle else [Segment(text, style)]
        return list(Strip(segments).crop(pan, pan + room).adjust_cell_length(room, style))

    def _marked(self, text: str, style: Style, current: bool) -> list[Segment]:
        needle = self._view.needle
        lowered = text.lower()
        if len(lowered) != len(text) or needle not in lowered:
            # A few letters change their length in lower case; such a line is shown without marks.
            return [Segment(text, style)]
        mark = self._style("current-match" if current else "match")
        segments = []
        done = 0
        while (found := lowered.find(needle, done)) >= 0:
            segments += [Segment(text[done:found], style), Segment(text[found : found + len(needle)], mark)]
            done = found + len(needle)
        segments.append(Segment(text[done:], style))
        return [segment for segment in segments if segment.text]

    def _gap(self, gap: LogGap) -> list[Segment]:
        width = self._view.width
        span = f"{self._times.clock(gap.start_ns)}–{self._times.clock(gap.end_ns)}"
        text = clip(f"── gap {span}: {inert(gap.reason)} ", width)
        return [Segment(text + "─" * (width - cell_len(text)), self._style("gap"))]
