"""Draw a row of the log: gutter, text, search matches, and the job's own ANSI colors.

The sixteen basic colors follow the terminal's theme. ``styled_spans`` is the only way from a server's escape
sequences to a style on the screen. It supports SGR (ECMA-48, 8.3.117; 256 and 24-bit colors as in xterm) and
nothing else; all other sequences are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from typing import NamedTuple

from rich import get_console
from rich.ansi import AnsiDecoder
from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from rich.text import Span, Text
from textual.strip import Strip

from api_client.models.logs import NS_PER_S, LogGap
from tui.analysis.logs.not_kept import NotKept
from tui.analysis.logs.pattern import LogPattern
from tui.analysis.logs.structured import pretty_rows
from tui.text.sanitize import clip, last_carriage_segment, sanitize, sanitize_whole
from tui.text.units import counted, duration
from tui.widgets.log_view.folds import Fold
from tui.widgets.log_view.gutter import LEVEL_SIGNS, NodeLabels, TimeColumn
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.store import LogStore
from tui.widgets.tones import SERIES_COLORS

SHOWN_CHARACTERS = 32_768
"""Maximum number of characters of a message to lay out.

The rest is only counted, so that a hostile or broken line stays cheap.
"""


class TextRow(NamedTuple):
    """A row of sanitized text, and the ranges colored by the job."""

    text: str
    spans: Sequence[Span] = ()


def message_rows(message: str, wrap_cells: int | None, *, pretty: bool = False) -> tuple[TextRow, ...]:
    """Return the rows of a message, one per line of text or more if wrapped.

    Progress bars that overwrite themselves (carriage returns) show their last state. With ``pretty``, an
    object in the message is expanded over several rows.
    """
    object_rows = pretty_rows(message) if pretty else None
    if object_rows is not None:
        rows = [TextRow(row) for row in object_rows]
    else:
        truncated = _truncated(message)
        parts = truncated.rstrip("\r\n").split("\n") if "\n" in truncated else [truncated]
        rows = [TextRow(*styled_spans(last_carriage_segment(part))) for part in parts]
    if wrap_cells is None:
        return tuple(rows)
    return tuple(piece for row in rows for piece in _wrapped(row, wrap_cells))


def _truncated(message: str) -> str:
    if len(message) <= SHOWN_CHARACTERS:
        return message
    # A progress bar's last state is at the end; any other text is read from the beginning.
    end = message[-SHOWN_CHARACTERS:]
    if "\r" in end.rstrip("\r\n") and "\n" not in message.rstrip("\r\n"):
        return last_carriage_segment(end)
    rest = len(message) - SHOWN_CHARACTERS
    return f"{message[:SHOWN_CHARACTERS]} … {counted(rest, 'more character')}"


def _wrapped(row: TextRow, cells: int) -> list[TextRow]:
    text, spans = row
    if not text.isascii():
        pieces = chop_cells(text, cells) or [""]
    elif len(text) <= cells:
        return [row]
    else:
        pieces = [text[begin : begin + cells] for begin in range(0, len(text), cells)]
    if not spans:
        return [TextRow(piece) for piece in pieces]
    ends = accumulate(map(len, pieces[:-1]))
    return [TextRow(line.plain, tuple(line.spans)) for line in Text(text, spans=list(spans)).divide(ends)]


_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,64}+)m")
_ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")


def styled_spans(text: str) -> tuple[str, list[Span]]:
    """Return a line of text sanitized, with its styled spans in order and without overlaps.

    The text is the result of ``sanitize_whole``. Text that its style would hide (concealed, or in its
    background's color) stays visible.
    """
    clean = sanitize_whole(text)
    if not any(introducer in text for introducer in ("\x1b", "\x9b")):
        return clean, []
    pieces: list[str] = []
    spans: list[Span] = []
    decoder, style = AnsiDecoder(), Style.null()
    length = done = 0
    # Limited, because a malicious line could change its style with each character.
    for match in [*islice(_SGR.finditer(text), 512), None]:
        piece = sanitize_whole(text[done : match.start() if match else None])
        if piece and style:
            spans.append(Span(length, length + len(piece), style))
        pieces.append(piece)
        length += len(piece)
        if match is not None:
            done = match.end()
            decoder.decode_line(f"\x1b[{_without_colons(match[1])}m")
            style = _visible(decoder.style)
    # Sanitized pieces may differ from the sanitized whole (tabs, combining marks at a border): show it plain.
    return clean, spans if "".join(pieces) == clean else []


def _without_colons(parameters: str) -> str:
    """Write colors such as ``38:2::9:8:7`` as ``38;2;9;8;7``; drop the details of other codes."""
    return ";".join(
        re.sub(":+", ";", field) if field.startswith(("38:", "48:")) else field.partition(":")[0]
        for field in parameters.split(";")
    )


def _visible(style: Style) -> Style:
    """Return the colors and attributes that leave text readable and are no links."""
    own = [None if color is None or color.is_default else color for color in (style.color, style.bgcolor)]
    color, background = own if own[0] != own[1] else (None, None)
    attributes = {name: getattr(style, name) or None for name in _ATTRIBUTES}
    return Style(color=color, bgcolor=background, **attributes)


_HIGHLIGHT = re.compile(
    r"(?P<bar>[█▉▊▋▌▍▎▏░▒▓━╺╸]+|\#{3,})"
    r"|(?P<path>(?:[a-z0-9]{1,10}:/|(?<![\w.]))/[\w.@+~-]+(?:/[\w.@+~-]+)+)"
    r"|(?P<name>'[\w./ -]{1,60}':|\"[\w./ -]{1,60}\":|\b[A-Za-z_][\w./-]{0,60}=(?=[\w\"'.(\[{-])|\bINFO\b)"
    r"|(?P<number>(?<![\w.])[-+]?\d{1,30}(?:[.,]\d{1,30}){0,6}(?:e[-+]?\d{1,4})?(?![\w.]))"
)

Part = tuple[int, int, str]
"""Begin, end and kind of a part of a text."""


@lru_cache(maxsize=2048)
def highlights(text: str) -> tuple[Part, ...]:
    """Return the parts to style, in order, without overlaps."""
    return tuple((*match.span(), match.lastgroup or "") for match in _HIGHLIGHT.finditer(text))


class RowKey(NamedTuple):
    """Everything that affects the appearance of a row except its text and the user's marks.

    Attributes:
        key: The line at whose position the row is shown.
        shown: The line whose text is shown.
        pretty: True if an object in the message is expanded over several rows.
    """

    key: LineKey
    shown: LineKey
    fold: Fold | None = None
    pretty: bool = False


class RowFlags(NamedTuple):
    """The user's marks on a row; `match` is the current match of the search."""

    cursor: bool = False
    selected: bool = False
    bookmark: bool = False
    match: bool = False


_LEVEL_STYLES = {"CRITICAL": "error", "ERROR": "error", "WARNING": "warning", "DEBUG": "debug"}


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

    def __init__(self, store: LogStore, times: TimeColumn, style: Callable[[str], Style]) -> None:
        self._store = store
        self._labels = NodeLabels()
        self.times = times
        self._style = style
        self.geometry = Geometry()
        self._rows: dict[tuple[LineKey, bool, int | None], tuple[TextRow, ...]] = {}

    @property
    def gutter_cells(self) -> int:
        """Cells before the text: mark, time, late sign, label, level, fold sign and separators."""
        label = self._labels.width
        return 1 + self.times.cells + 1 + (label + 1 if label else 0) + 2

    @property
    def text_cells(self) -> int:
        return max(1, self.geometry.width - self.gutter_cells)

    def register_nodes(self, replicas: Iterable[str | None]) -> bool:
        """Register the nodes of lines to be shown; return True if the gutter grew."""
        before = self._labels.width
        for replica in replicas:
            self._labels.get(replica)
        return self._labels.width != before

    def rows(self, row_key: RowKey) -> tuple[TextRow, ...]:
        wrap_cells = self.text_cells if self.geometry.wrap else None
        key = (row_key.shown, row_key.pretty, wrap_cells)
        if key not in self._rows:
            if len(self._rows) >= 2048:
                self._rows.clear()
            block, index = self._store.locate(row_key.shown)
            self._rows[key] = message_rows(block.text(index), wrap_cells, pretty=row_key.pretty)
        return self._rows[key]

    def line(self, row_key: RowKey, number: int, flags: RowFlags) -> list[Segment]:
        """Return one screen line of a row, exactly as wide as the view."""
        attributes = self._store.attributes(row_key.shown)
        if isinstance(attributes, LogGap):
            return self._gap(attributes, flags)
        width, gutter = self.geometry.width, self.gutter_cells
        text_style = self._style(_LEVEL_STYLES.get(attributes.shown_level, "text"))
        muted = self._style("time")
        if number:
            segments = [Segment(" " * gutter, muted)]
        else:
            label, color = self._labels.get(attributes.replica)
            label_cells = self._labels.width + 1 if self._labels.width else 0
            node = self._style(f"node-{color % SERIES_COLORS}")
            label += " " * (label_cells - cell_len(label))
            late = Segment("↶", self._style("warning")) if attributes.late else Segment(" ", muted)
            fold = row_key.fold
            is_open = row_key.pretty or (fold is not None and fold.is_open)
            fold_sign = "▾" if is_open else " " if fold is None else "▸"
            segments = [
                self._mark(flags),
                Segment(self.times.text(row_key.key.time_ns), muted),
                late,
                Segment(label, node),
                Segment(LEVEL_SIGNS.get(attributes.shown_level, " "), text_style),
                Segment(fold_sign, muted),
            ]
        rows = self.rows(row_key)
        row = rows[number] if number < len(rows) else TextRow("")
        # In wrapped text the note goes on the last row, not in the middle of the text.
        has_note = number == (len(rows) - 1 if self.geometry.wrap else 0)
        room = max(0, width - gutter)
        note = self._fold_note(row_key, room - len(row.text) - 1) if has_note else ""
        # The note of a fold is never cut off: reserve its space first.
        note = f" {clip(note, max(0, room - 1))}" if note else ""
        segments += self._text_strip(row, max(0, room - cell_len(note)), text_style, flags)
        segments.append(Segment(note, self._style("fold")))
        if gutter > width:
            segments = list(Strip(segments).adjust_cell_length(width, muted))
        return self._highlighted(segments, flags)

    def empty(self, text: str) -> list[Segment]:
        text = clip(text, self.geometry.width)
        left = (self.geometry.width - len(text)) // 2
        return [Segment((" " * left + text).ljust(self.geometry.width), self._style("empty"))]

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
        return Segment("┃", self._style("thumb")) if is_thumb else Segment("│", self._style("track"))

    def _mark(self, flags: RowFlags) -> Segment:
        sign = "◆" if flags.bookmark else "›" if flags.cursor else " "
        return Segment(sign, self._style("bookmark"))

    def _highlighted(self, segments: list[Segment], flags: RowFlags) -> list[Segment]:
        if not (flags.cursor or flags.selected):
            return segments
        highlight = self._style("selected" if flags.selected else "cursor")
        # Keep the line's own colors: an error stays red when selected.
        behind = Style(
            bgcolor=highlight.bgcolor, bold=highlight.bold or None, reverse=highlight.reverse or None
        )
        return [Segment(text, behind if style is None else style + behind) for text, style, _ in segments]

    def _text_strip(self, row: TextRow, room: int, style: Style, flags: RowFlags) -> Strip:
        geometry = self.geometry
        pan = 0 if geometry.wrap else geometry.pan
        # Leave out what is never visible: a long line costs no more than a short one.
        # Sanitized text has at most two combining marks per character.
        last = (pan + room + 1) * (1 if row.text.isascii() else 4)
        text = Text(row.text[:last])
        text.stylize(style)  # Rich ignores the base style of a text without spans
        for start, stop, kind in highlights(text.plain) if style == self._style("text") else ():
            text.stylize(self._style(kind), start, stop)
        for start, stop, own in row.spans if geometry.has_colors else ():
            text.stylize(own, start, stop)
        mark = self._style("current-match" if flags.match else "match")
        for start, stop in geometry.pattern.spans(row.text) if geometry.pattern is not None else ():
            text.stylize(mark, start, stop)
        strip = Strip(text.render(get_console()))
        if strip.cell_length > pan + room > pan:
            return Strip([*strip.crop(pan, pan + room - 1), Segment("…", self._style("fold"))])
        return strip.crop(pan).adjust_cell_length(room, style)

    def _fold_note(self, row_key: RowKey, room: int) -> str:
        """Return the note after a closed fold; that of a progress bar is shortened to show the bar's end."""
        fold = row_key.fold
        if fold is None or fold.is_open:
            return ""
        if fold.kind == "repeat":
            return f"×{len(fold):,}"
        if fold.kind == "progress":
            # A bar that was not moved has the time of its position; its text may be of a later line.
            anchored, now = self.times.clock(row_key.key.time_ns), self.times.clock(row_key.shown.time_ns)
            states = counted(len(fold), "state")
            later = f"({states}, now {now})"
            note = later if now != anchored and len(later) <= room else f"({states})"
            return note if len(note) <= room else f"×{len(fold):,}"
        return f"({counted(len(fold), 'line')})"

    def _gap(self, gap: LogGap, flags: RowFlags) -> list[Segment]:
        width = self.geometry.width
        span = f"{self.times.clock(gap.start_ns)}–{self.times.clock(gap.end_ns)}"
        length = duration(max(0, gap.end_ns - gap.start_ns) / NS_PER_S)
        text = f"gap {span} ({length}): {sanitize(gap.reason)}"
        if isinstance(gap, NotKept):
            text = f"{span} ({length}) not kept: open to read"
        text = clip(f"── {text} ", max(0, width - 1))
        style = self._style("gap")
        segments = [self._mark(flags), Segment(text + "─" * (width - 1 - cell_len(text)), style)]
        return self._highlighted(segments, flags)
