"""Draw a row of the log: gutter, text, search matches, and the job's own ANSI colors.

The sixteen basic colors follow the terminal's theme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rich import get_console
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from api_client.models.logs import NS_PER_S, LogGap
from tui.analysis.logs.not_kept import NotKept
from tui.analysis.logs.pattern import LogPattern
from tui.text.sanitize import clip, sanitize
from tui.text.units import counted, duration
from tui.widgets.log_view.folds import FoldKind
from tui.widgets.log_view.gutter import LEVEL_SIGNS, NodeLabels, TimeColumn
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.text import TextRow, highlights, message_rows
from tui.widgets.tones import SERIES_COLORS


class RowKey(NamedTuple):
    """Everything that affects the appearance of a row except its text and the user's marks.

    Attributes:
        key: The line at whose position the row is shown.
        shown: The line whose text is shown.
        pretty: True if an object in the message is expanded over several rows.
    """

    key: LineKey
    shown: LineKey
    fold: FoldKind | None = None
    lines: int = 1
    is_open: bool = False
    pretty: bool = False


class RowFlags(NamedTuple):
    """The user's marks on a row; `match` is the current match of the search."""

    cursor: bool = False
    selected: bool = False
    bookmark: bool = False
    match: bool = False


LATE_SIGN = "↶"
"""Sign of a late line: one that arrived after lines with later timestamps."""
BOOKMARK_SIGN = "◆"
CURSOR_SIGN = "›"
CLOSED_SIGN, OPEN_SIGN = "▸", "▾"
_THUMB, _TRACK = "┃", "│"

_CACHED_MESSAGES = 2048
_LEVEL_STYLES = {"CRITICAL": "error", "ERROR": "error", "WARNING": "warning", "DEBUG": "debug"}
_CHARACTERS_PER_CELL = 4  # sanitized text has at most two combining marks per character


@dataclass(frozen=True, slots=True)
class Geometry:
    """Settings for drawing rows.

    The width excludes the scroll bar; `pan` cells are cut off at the left of the text.
    """

    width: int = 1
    wrap: bool = False
    pan: int = 0
    pattern: LogPattern | None = None
    has_colors: bool = True


class LogRenderer:
    """Renders screen lines of rows as segments."""

    def __init__(self, times: TimeColumn, style: Callable[[str], Style]) -> None:
        self._labels = NodeLabels()
        self._times = times
        self._style = style
        self.geometry = Geometry()
        self._rows: dict[tuple[LineKey, bool, int | None], tuple[TextRow, ...]] = {}

    @property
    def gutter_cells(self) -> int:
        """Cells before the text: mark, time, late sign, label, level, fold sign and separators."""
        label = self._labels.width
        return 1 + self._times.cells + 1 + (label + 1 if label else 0) + 2

    @property
    def text_cells(self) -> int:
        return max(1, self.geometry.width - self.gutter_cells)

    @property
    def _wrap_cells(self) -> int | None:
        return self.text_cells if self.geometry.wrap else None

    def show_days(self, first_ns: int, newest_ns: int) -> None:
        """Show the day of each line if the first line to be shown is not of the newest one's day."""
        self._times.update_time_span(first_ns, newest_ns)

    def register_nodes(self, replicas: Iterable[str | None]) -> bool:
        """Register the nodes of lines to be shown; return True if the gutter grew."""
        before = self._labels.width
        for replica in replicas:
            self._labels.get(replica)
        return self._labels.width != before

    def rows(self, store: LogStore, row_key: RowKey) -> tuple[TextRow, ...]:
        key = (row_key.shown, row_key.pretty, self._wrap_cells)
        rows = self._rows.get(key)
        if rows is None:
            if len(self._rows) >= _CACHED_MESSAGES:
                self._rows.clear()
            block, index = store.locate(row_key.shown)
            rows = message_rows(block.text(index), self._wrap_cells, pretty=row_key.pretty)
            self._rows[key] = rows
        return rows

    def line(self, store: LogStore, row_key: RowKey, number: int, flags: RowFlags) -> list[Segment]:
        """Return one screen line of a row, exactly as wide as the view."""
        attributes = store.attributes(row_key.shown)
        if isinstance(attributes, LogGap):
            return self._gap(attributes, flags)
        width, gutter = self.geometry.width, self.gutter_cells
        text_style = self._style(_LEVEL_STYLES.get(attributes.shown_level, "text"))
        muted = self._style("time")
        if number:
            segments = [self._mark(flags, first=False), Segment(" " * (gutter - 1), muted)]
        else:
            label, color = self._labels.get(attributes.replica)
            label_cells = self._labels.width + 1 if self._labels.width else 0
            node = self._style(f"node-{color % SERIES_COLORS}")
            label += " " * (label_cells - cell_len(label))
            late = Segment(LATE_SIGN, self._style("warning")) if attributes.late else Segment(" ", muted)
            fold = " " if row_key.fold is None else OPEN_SIGN if row_key.is_open else CLOSED_SIGN
            if row_key.pretty:
                fold = OPEN_SIGN
            segments = [
                self._mark(flags, first=True),
                Segment(self._times.text(row_key.key.time_ns), muted),
                late,
                Segment(label, node),
                Segment(LEVEL_SIGNS.get(attributes.shown_level, " "), text_style),
                Segment(fold, muted),
            ]
        rows = self.rows(store, row_key)
        row = rows[number] if number < len(rows) else TextRow("")
        # In wrapped text the note goes on the last row, not in the middle of the text.
        noted = len(rows) - 1 if self.geometry.wrap else 0
        noted_key = row_key if number == noted else None
        segments += self._text(store, row, noted_key, max(0, width - gutter), text_style, flags)
        if gutter > width:
            segments = list(Strip(segments).adjust_cell_length(width, muted))
        return self._highlighted(segments, flags)

    def empty(self, text: str) -> list[Segment]:
        width, plain = self.geometry.width, self._style("text")
        if not text:
            return [Segment(" " * width, plain)]
        text = clip(text, width)
        left = (width - cell_len(text)) // 2
        right = width - left - cell_len(text)
        return [Segment(" " * left + text, self._style("empty")), Segment(" " * right, plain)]

    def with_badge(self, segments: list[Segment], badge: str) -> list[Segment]:
        badge = clip(badge, self.geometry.width)
        return [
            *Strip(segments).crop(0, self.geometry.width - len(badge)),
            Segment(badge, self._style("badge")),
        ]

    def scroll_bar(self, y: int, height: int, rows: int, first_row: int, last_row: int) -> Segment:
        shown_rows = last_row - first_row + 1
        if rows <= shown_rows:
            return Segment(" ", self._style("text"))
        length = max(1, round(height * shown_rows / rows))
        start = round((height - length) * min(1.0, first_row / (rows - shown_rows)))
        is_thumb = start <= y < start + length
        return Segment(_THUMB, self._style("thumb")) if is_thumb else Segment(_TRACK, self._style("track"))

    def _mark(self, flags: RowFlags, *, first: bool) -> Segment:
        if flags.bookmark and first:
            return Segment(BOOKMARK_SIGN, self._style("bookmark"))
        return Segment(CURSOR_SIGN if flags.cursor and first else " ", self._style("bookmark"))

    def _highlighted(self, segments: list[Segment], flags: RowFlags) -> list[Segment]:
        if not (flags.cursor or flags.selected):
            return segments
        highlight = self._style("selected" if flags.selected else "cursor")
        # Keep the line's own colors: an error stays red when selected.
        behind = Style(
            bgcolor=highlight.bgcolor, bold=highlight.bold or None, reverse=highlight.reverse or None
        )
        return [Segment(text, behind if style is None else style + behind) for text, style, _ in segments]

    def _text(
        self, store: LogStore, row: TextRow, row_key: RowKey | None, room: int, style: Style, flags: RowFlags
    ) -> list[Segment]:
        note = self._note(store, row_key, room - len(row.text) - 1)
        if note:
            # The note of a fold is never cut off: reserve its space first.
            note = clip(note, max(0, room - 1))
            return [
                *self._visible_text(row, room - cell_len(note) - 1, style, flags),
                Segment(" " + note, self._style("fold")),
            ]
        return self._visible_text(row, room, style, flags)

    def _visible_text(self, row: TextRow, room: int, style: Style, flags: RowFlags) -> list[Segment]:
        geometry, room, is_ascii = self.geometry, max(0, room), row.text.isascii()
        pan = 0 if geometry.wrap else geometry.pan
        matches = geometry.pattern.spans(row.text) if geometry.pattern is not None else []
        is_plain = style == self._style("text")
        if is_ascii and not matches and not row.spans:
            visible = row.text[pan : pan + room]
            segments, done = [], 0
            for start, stop, kind in highlights(visible) if is_plain else ():
                segments.append(Segment(visible[done:start], style))
                segments.append(Segment(visible[start:stop], style + self._style(kind)))
                done = stop
            return [*segments, Segment(visible[done:].ljust(room - done), style)]
        # Leave out what is never visible: a long line costs no more than a short one.
        text = Text(row.text[: (pan + room) * (1 if is_ascii else _CHARACTERS_PER_CELL)], style)
        for start, stop, kind in highlights(text.plain) if is_plain else ():
            text.stylize(self._style(kind), start, stop)
        for start, stop, own in row.spans if geometry.has_colors else ():
            text.stylize(own, start, stop)
        mark = self._style("current-match" if flags.match else "match")
        for start, stop in matches:
            text.stylize(mark, start, stop)
        strip = Strip(text.render(get_console()))
        return list(strip.crop(pan, pan + room).adjust_cell_length(room, style))

    def _note(self, store: LogStore, row_key: RowKey | None, room: int) -> str:
        """Return the fold's note. For a progress bar, shorten it to leave room for the end of the bar."""
        if row_key is None or row_key.fold is None or row_key.is_open:
            return ""
        if row_key.fold == "repeat":
            return f"×{row_key.lines:,}"
        if row_key.fold == "progress":
            # A bar held in place has the time of its position, while its text may be from a later line.
            anchored, now = self._times.clock(row_key.key.time_ns), self._times.clock(row_key.shown.time_ns)
            states = counted(row_key.lines, "state")
            later = f"({states}, now {now})"
            note = later if now != anchored and len(later) <= room else f"({states})"
            return note if len(note) <= room else f"×{row_key.lines:,}"
        return f"({counted(row_key.lines, 'line')})"

    def _gap(self, gap: LogGap, flags: RowFlags) -> list[Segment]:
        width = self.geometry.width
        span = f"{self._times.clock(gap.start_ns)}–{self._times.clock(gap.end_ns)}"
        lasted = duration(max(0, gap.end_ns - gap.start_ns) / NS_PER_S)
        what = f"gap {span} ({lasted}): {sanitize(gap.reason)}"
        if isinstance(gap, NotKept):
            what = f"{span} ({lasted}) not kept: open to read"
        text = clip(f"── {what} ", max(0, width - 1))
        style = self._style("gap")
        segments = [self._mark(flags, first=True), Segment(text + "─" * (width - 1 - cell_len(text)), style)]
        return self._highlighted(segments, flags)
