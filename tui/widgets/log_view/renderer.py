"""Draw a row of the log: gutter, text, search matches, and the ANSI colors that the job printed.

Only ``styled_spans`` turns escape sequences from a server into styles. It supports SGR sequences (ECMA-48,
8.3.117; 256 and 24-bit colors as in xterm) and drops all others. The terminal's theme decides how the
sixteen basic colors look.
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

MAX_MESSAGE_LENGTH = 32_768
"""Maximum number of characters of a message to show.

Of a longer message, only the number of further characters is shown, so that a huge line stays cheap.
"""


class TextRow(NamedTuple):
    """A row of sanitized text, and the ranges that the job printed in a color."""

    text: str
    spans: Sequence[Span] = ()


def message_rows(message: str, wrap_cells: int | None, *, pretty: bool = False) -> tuple[TextRow, ...]:
    """Return the rows of a message: one per line of text, or several if wrapped at ``wrap_cells``.

    Of a line that was overwritten with carriage returns (a progress bar), the last state is shown. With
    ``pretty``, a JSON object or Python dict in the message is shown over several rows.
    """
    object_rows = pretty_rows(message) if pretty else None
    if object_rows is not None:
        rows = [TextRow(row) for row in object_rows]
    else:
        truncated = _truncated(message)
        lines = truncated.rstrip("\r\n").split("\n") if "\n" in truncated else [truncated]
        rows = [TextRow(*styled_spans(last_carriage_segment(line))) for line in lines]
    if wrap_cells is None:
        return tuple(rows)
    return tuple(wrapped_row for row in rows for wrapped_row in _wrapped(row, wrap_cells))


def _truncated(message: str) -> str:
    if len(message) <= MAX_MESSAGE_LENGTH:
        return message
    # Of a progress bar, show the end, where its last state is; of any other message, the beginning.
    end = message[-MAX_MESSAGE_LENGTH:]
    if "\r" in end.rstrip("\r\n") and "\n" not in message.rstrip("\r\n"):
        return last_carriage_segment(end)
    excess_length = len(message) - MAX_MESSAGE_LENGTH
    return f"{message[:MAX_MESSAGE_LENGTH]} … {counted(excess_length, 'more character')}"


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
    """Return a line as ``sanitize_whole`` does, and the ranges that its SGR sequences style, in order.

    Styles that would hide text (concealed, or in the color of its background) are ignored.
    """
    clean_text = sanitize_whole(text)
    if not any(introducer in text for introducer in ("\x1b", "\x9b")):
        return clean_text, []
    pieces: list[str] = []
    spans: list[Span] = []
    decoder, style = AnsiDecoder(), Style.null()
    length = end_of_last = 0
    # At most 512, because a malicious line could change its style with each character.
    for match in [*islice(_SGR.finditer(text), 512), None]:
        piece = sanitize_whole(text[end_of_last : match.start() if match else None])
        if piece and style:
            spans.append(Span(length, length + len(piece), style))
        pieces.append(piece)
        length += len(piece)
        if match is not None:
            end_of_last = match.end()
            decoder.decode_line(f"\x1b[{_without_colons(match[1])}m")
            style = _without_hiding(decoder.style)
    # If the sanitized pieces differ from the sanitized line (a tab, or combining marks at the end of a
    # piece), the spans would be at wrong positions: show the line without them.
    return clean_text, spans if "".join(pieces) == clean_text else []


def _without_colons(parameters: str) -> str:
    """Write SGR colors such as ``38:2::9:8:7`` as ``38;2;9;8;7``; drop the subparameters of other codes."""
    return ";".join(
        re.sub(":+", ";", parameter) if parameter.startswith(("38:", "48:")) else parameter.partition(":")[0]
        for parameter in parameters.split(";")
    )


def _without_hiding(style: Style) -> Style:
    """Return a style without links, and without colors and attributes that would make text unreadable."""
    colors = [None if color is None or color.is_default else color for color in (style.color, style.bgcolor)]
    color, background = colors if colors[0] != colors[1] else (None, None)
    attributes = {name: getattr(style, name) or None for name in _ATTRIBUTES}
    return Style(color=color, bgcolor=background, **attributes)


_HIGHLIGHT = re.compile(
    r"(?P<bar>[█▉▊▋▌▍▎▏░▒▓━╺╸]+|\#{3,})"
    r"|(?P<path>(?:[a-z0-9]{1,10}:/|(?<![\w.]))/[\w.@+~-]+(?:/[\w.@+~-]+)+)"
    r"|(?P<name>'[\w./ -]{1,60}':|\"[\w./ -]{1,60}\":|\b[A-Za-z_][\w./-]{0,60}=(?=[\w\"'.(\[{-])|\bINFO\b)"
    r"|(?P<number>(?<![\w.])[-+]?\d{1,30}(?:[.,]\d{1,30}){0,6}(?:e[-+]?\d{1,4})?(?![\w.]))"
)

Highlight = tuple[int, int, str]
"""A range of a text (start, end) and its kind: bar, path, name or number."""


@lru_cache(maxsize=2048)
def highlights(text: str) -> tuple[Highlight, ...]:
    """Return the ranges of a message to style, in order and without overlaps."""
    return tuple((*match.span(), match.lastgroup or "") for match in _HIGHLIGHT.finditer(text))


class RowKey(NamedTuple):
    """Identifies a row and how it is drawn, except for its ``RowFlags``.

    Attributes:
        position_key: The line at whose position the row is shown.
        text_key: The line whose text is shown; of a fold, another line than ``position_key``.
        fold: The fold whose row this is.
        pretty: True to show the object in the message over several rows.
    """

    position_key: LineKey
    text_key: LineKey
    fold: Fold | None = None
    pretty: bool = False


class RowFlags(NamedTuple):
    """How a row is highlighted; ``is_match`` is True for the row of the current search match."""

    is_cursor: bool = False
    is_selected: bool = False
    is_bookmarked: bool = False
    is_match: bool = False


_LEVEL_STYLES = {"CRITICAL": "error", "ERROR": "error", "WARNING": "warning", "DEBUG": "debug"}


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """Settings for drawing rows.

    ``width`` is the width of the view without its scroll bar; ``pan`` is the number of cells that are cut off
    at the left of the text; matches of ``pattern`` are highlighted.
    """

    width: int = 1
    wrap: bool = False
    pan: int = 0
    pattern: LogPattern | None = None
    has_colors: bool = True


class LogRenderer:
    """Renders the screen lines of a log view as segments."""

    def __init__(self, store: LogStore, times: TimeColumn, style: Callable[[str], Style]) -> None:
        self._store = store
        self._labels = NodeLabels()
        self.times = times
        self._style = style
        self.settings = RenderSettings()
        self._rows: dict[tuple[LineKey, bool, int | None], tuple[TextRow, ...]] = {}

    @property
    def gutter_cells(self) -> int:
        """Number of cells before the text: cursor or bookmark, time, late sign, node, level, fold sign."""
        label_cells = self._labels.width
        return 1 + self.times.cells + 1 + (label_cells + 1 if label_cells else 0) + 2

    @property
    def text_cells(self) -> int:
        return max(1, self.settings.width - self.gutter_cells)

    def register_nodes(self, replicas: Iterable[str | None]) -> bool:
        """Assign labels to the nodes of lines that will be drawn; return True if the gutter got wider."""
        previous_width = self._labels.width
        for replica in replicas:
            self._labels.get(replica)
        return self._labels.width != previous_width

    def rows(self, row_key: RowKey) -> tuple[TextRow, ...]:
        wrap_cells = self.text_cells if self.settings.wrap else None
        key = (row_key.text_key, row_key.pretty, wrap_cells)
        if key not in self._rows:
            if len(self._rows) >= 2048:
                self._rows.clear()
            block, index = self._store.locate(row_key.text_key)
            self._rows[key] = message_rows(block.text(index), wrap_cells, pretty=row_key.pretty)
        return self._rows[key]

    def line(self, row_key: RowKey, number: int, flags: RowFlags) -> list[Segment]:
        """Return screen line ``number`` of a row, exactly as wide as the view."""
        attributes = self._store.attributes(row_key.text_key)
        if isinstance(attributes, LogGap):
            return self._gap_line(attributes, flags)
        width, gutter = self.settings.width, self.gutter_cells
        text_style = self._style(_LEVEL_STYLES.get(attributes.display_level, "text"))
        muted = self._style("time")
        if number:
            segments = [Segment(" " * gutter, muted)]
        else:
            label, color = self._labels.get(attributes.replica)
            label_cells = self._labels.width + 1 if self._labels.width else 0
            node_style = self._style(f"node-{color % SERIES_COLORS}")
            label += " " * (label_cells - cell_len(label))
            late_sign = Segment("↶", self._style("warning")) if attributes.is_late else Segment(" ", muted)
            fold = row_key.fold
            is_open = row_key.pretty or (fold is not None and fold.is_open)
            fold_sign = "▾" if is_open else " " if fold is None else "▸"
            segments = [
                self._mark_segment(flags),
                Segment(self.times.text(row_key.position_key.time_ns), muted),
                late_sign,
                Segment(label, node_style),
                Segment(LEVEL_SIGNS.get(attributes.display_level, " "), text_style),
                Segment(fold_sign, muted),
            ]
        rows = self.rows(row_key)
        row = rows[number] if number < len(rows) else TextRow("")
        # The note of a fold is at the end of the text: on the last row if it is wrapped, else on the first.
        has_note = number == (len(rows) - 1 if self.settings.wrap else 0)
        room = max(0, width - gutter)
        note = self._fold_note(row_key, room - len(row.text) - 1) if has_note else ""
        # Reserve the cells of the note, so that a long text does not cut it off.
        note = f" {clip(note, max(0, room - 1))}" if note else ""
        segments += self._text_strip(row, max(0, room - cell_len(note)), text_style, flags)
        segments.append(Segment(note, self._style("fold")))
        if gutter > width:
            segments = list(Strip(segments).adjust_cell_length(width, muted))
        return self._highlighted(segments, flags)

    def message_line(self, text: str) -> list[Segment]:
        """Return a screen line with a centered text, such as "No log lines yet."."""
        text = clip(text, self.settings.width)
        left = (self.settings.width - len(text)) // 2
        return [Segment((" " * left + text).ljust(self.settings.width), self._style("empty"))]

    def with_badge(self, segments: list[Segment], badge: str) -> list[Segment]:
        """Return a screen line whose right end is covered by a badge."""
        badge = clip(badge, self.settings.width)
        return [
            *Strip(segments).crop(0, self.settings.width - len(badge)),
            Segment(badge, self._style("badge")),
        ]

    def scroll_bar(self, y: int, height: int, rows: int, first_row: int, last_row: int) -> Segment:
        """Return the cell of the scroll bar at line ``y``; the screen shows ``first_row`` to ``last_row``."""
        shown_rows = last_row - first_row + 1
        if rows <= shown_rows:
            return Segment(" ", self._style("text"))
        length = max(1, round(height * shown_rows / rows))
        start = round((height - length) * min(1.0, first_row / (rows - shown_rows)))
        is_thumb = start <= y < start + length
        return Segment("┃", self._style("thumb")) if is_thumb else Segment("│", self._style("track"))

    def _mark_segment(self, flags: RowFlags) -> Segment:
        sign = "◆" if flags.is_bookmarked else "›" if flags.is_cursor else " "
        return Segment(sign, self._style("bookmark"))

    def _highlighted(self, segments: list[Segment], flags: RowFlags) -> list[Segment]:
        if not (flags.is_cursor or flags.is_selected):
            return segments
        highlight = self._style("selected" if flags.is_selected else "cursor")
        # Without the highlight's text color, so that an error stays red when selected.
        highlight_without_color = Style(
            bgcolor=highlight.bgcolor, bold=highlight.bold or None, reverse=highlight.reverse or None
        )
        return [
            Segment(text, highlight_without_color if style is None else style + highlight_without_color)
            for text, style, _ in segments
        ]

    def _text_strip(self, row: TextRow, room: int, style: Style, flags: RowFlags) -> Strip:
        settings = self.settings
        pan = 0 if settings.wrap else settings.pan
        # Style only characters that may be visible, so that a long line costs no more than a short one. Four
        # characters per cell are enough: sanitized text has at most two combining marks per character.
        max_characters = (pan + room + 1) * (1 if row.text.isascii() else 4)
        text = Text(row.text[:max_characters])
        text.stylize(style)  # not as the Text's base style, which Rich ignores if there are no spans
        for start, end, kind in highlights(text.plain) if style == self._style("text") else ():
            text.stylize(self._style(kind), start, end)
        for start, end, span_style in row.spans if settings.has_colors else ():
            text.stylize(span_style, start, end)
        match_style = self._style("current-match" if flags.is_match else "match")
        for start, end in settings.pattern.spans(row.text) if settings.pattern is not None else ():
            text.stylize(match_style, start, end)
        strip = Strip(text.render(get_console()))
        if strip.cell_length > pan + room > pan:
            return Strip([*strip.crop(pan, pan + room - 1), Segment("…", self._style("fold"))])
        return strip.crop(pan).adjust_cell_length(room, style)

    def _fold_note(self, row_key: RowKey, room: int) -> str:
        """Return the note after the text of a closed fold.

        The note of a progress bar is shortened to ``room`` cells, so that the end of the bar stays visible.
        """
        fold = row_key.fold
        if fold is None or fold.is_open:
            return ""
        if fold.kind == "repeat":
            return f"×{len(fold):,}"
        if fold.kind == "progress":
            # The gutter has the time of the row's position; if the text is of a later line, add its time.
            row_time = self.times.clock(row_key.position_key.time_ns)
            text_time = self.times.clock(row_key.text_key.time_ns)
            states = counted(len(fold), "state")
            with_time = f"({states}, now {text_time})"
            note = with_time if text_time != row_time and len(with_time) <= room else f"({states})"
            return note if len(note) <= room else f"×{len(fold):,}"
        return f"({counted(len(fold), 'line')})"

    def _gap_line(self, gap: LogGap, flags: RowFlags) -> list[Segment]:
        width = self.settings.width
        span = f"{self.times.clock(gap.start_ns)}–{self.times.clock(gap.end_ns)}"
        length = duration(max(0, gap.end_ns - gap.start_ns) / NS_PER_S)
        text = f"gap {span} ({length}): {sanitize(gap.reason)}"
        if isinstance(gap, NotKept):
            text = f"{span} ({length}) not kept in memory: open to read again"
        text = clip(f"── {text} ", max(0, width - 1))
        style = self._style("gap")
        segments = [self._mark_segment(flags), Segment(text + "─" * (width - 1 - cell_len(text)), style)]
        return self._highlighted(segments, flags)
