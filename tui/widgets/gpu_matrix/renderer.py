"""Lay out and draw the node × GPU matrix: a line per node, or several nodes per line if they don't fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from rich.cells import cell_len

from tui.analysis.series import EMPTY, Range, Series, reduce_columns
from tui.text.names import abbreviated_names
from tui.text.sanitize import clip, sanitize
from tui.text.units import UNKNOWN, counted, percent, thin_bar
from tui.widgets.charts.legend import short_names
from tui.widgets.charts.spec import BLOCKS, GAP, block, value_at
from tui.widgets.charts.ticks import duration_label
from tui.widgets.tones import HEAT_LEVELS

Shares = tuple[float | None, ...]
"""Shares (0–1), one per GPU; None if unknown."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A node (or a GPU, if there is only one node).

    Attributes:
        label_note: A sign and a word such as "▲ slow"; empty for none. Only the sign is shown if space is
            scarce.
        history: Its share over time, or the share times ``Frame.full``, for a matrix that shows time.
        facts: CPU, memory, disk … as text, in the order of ``Frame.facts``.
    """

    name: str
    label_note: str
    values: Shares
    mean: float | None
    history: Series = EMPTY
    facts: tuple[str, ...] = ()

    @property
    def sign(self) -> str:
        return self.label_note[:1]


@dataclass(frozen=True, slots=True)
class Frame:
    """Display settings of a matrix, besides its nodes.

    ``over_time`` shows each node's history, from ``start`` to ``end`` (epoch seconds), instead of its GPUs:
    the lowest value of each cell if ``low_is_bad``, else the highest. A value of ``full`` is a share of 1.
    ``facts`` are the headings of the columns beside the cells, ``remark`` a note on all nodes.
    """

    title: str = ""
    over_time: bool = False
    start: float = 0.0
    end: float = 0.0
    full: float = 1.0
    end_label: str = "now"
    low_is_bad: bool = True
    facts: tuple[str, ...] = ()
    remark: str = ""


Glyph = tuple[str, str]
"""Text and the name of its style."""

# zero to four dots in the left column of a braille cell, from the bottom
_LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_BRAILLE = 0x2800
_HEIGHTS = 4
_LOWERED = {BLOCKS[-1]: BLOCKS[-2]}  # full blocks would merge with those of the next node


def heat(share: float | None) -> str:
    if share is None or isnan(share):
        return "unknown"
    return f"heat-{min(int(min(max(share, 0.0), 1.0) * HEAT_LEVELS), HEAT_LEVELS - 1)}"


def bar(share: float | None) -> Glyph:
    glyph = block(share)
    return _LOWERED.get(glyph, glyph), heat(share)


def braille_bars(shares: Sequence[float | None]) -> list[Glyph]:
    """Return two GPUs per cell, each one to four dots high, in the heat color of the lower of the two."""
    glyphs = []
    for at in range(0, len(shares), 2):
        pair = shares[at : at + 2]
        finite = [share for share in pair if share is not None and not isnan(share)]
        if not finite:
            glyphs.append((GAP, "unknown"))
            continue
        left = _dots(pair[0])
        right = _dots(pair[1]) if len(pair) > 1 else 0
        glyphs.append((chr(_BRAILLE | _LEFT[left] | _RIGHT[right]), heat(min(finite))))
    return glyphs


def _dots(share: float | None) -> int:
    if share is None or isnan(share):
        return 0
    return 1 + min(_HEIGHTS - 1, int(min(max(share, 0.0), 1.0) * _HEIGHTS))


def _number(share: float | None) -> str:
    return UNKNOWN if share is None or isnan(share) else f"{share * 100:.0f}"


HEADER_LINES = 1
SCROLL_BAR_CELLS = 1  # must match the widget's CSS
MAX_NAME_CELLS = 20
MIN_NAME_CELLS = 6
VALUE_CELLS = 4  # fits "100%"
NOTE_CELLS = 6
"""Reserved for notes such as "▲ slow", so that cells don't move when a note comes or goes."""
SIGN_CELLS = 2
"""Always reserved for the note's sign and the space before it."""
_CELL_STEP = 2  # a cell and the space after it
_NUMBER_STEP = 5  # a cell with its share as a number, if there is room for all
_FACT_GAP = 2
_MIN_HISTORY_CELLS = 10


class MatrixRenderer:
    """Renders the lines of a matrix from rows, frame and size.

    Attributes:
        across: Number of nodes on a line.
        is_dense: True if lines hold several nodes, two GPUs per cell; each node is followed by its sign.
    """

    def __init__(self) -> None:
        self.rows: tuple[MatrixRow, ...] = ()
        self.frame = Frame()
        self.across = 1
        self.is_dense = False
        self._width = 0
        self._gpus = 0
        self._names: list[str] = []
        self._labels: list[str] = []
        self._label_cells = self._node_cells = 0
        self._left_cells = self._cell_step = 0
        self._fact_widths: list[int] = []

    def lay_out(self, rows: tuple[MatrixRow, ...], frame: Frame, width: int, height: int) -> None:
        """Set the data and the available size."""
        self.rows, self.frame = rows, frame
        self._gpus = max((len(row.values) for row in rows), default=0)
        self.is_dense = not frame.over_time and self._gpus > 0 and HEADER_LINES + len(rows) > height
        self._names = [sanitize(row.name) for row in rows]
        for self._width in (width, width - SCROLL_BAR_CELLS):  # the scroll bar would cover the last cells
            if self.is_dense:
                self._place_nodes()
            else:
                self._place_columns()
            if self.lines <= height:
                break

    def _place_nodes(self) -> None:
        self._labels = abbreviated_names(short_names(self._names), MAX_NAME_CELLS)
        self._label_cells = max(map(cell_len, self._labels)) + 1
        self._node_cells = -(-self._gpus // 2) + 1
        self.across = max(1, min(len(self.rows), (self._width - self._label_cells) // self._node_cells))

    def _place_columns(self) -> None:
        self.across = 1
        name = min(MAX_NAME_CELLS, max(map(cell_len, self._names), default=0))
        note = max(NOTE_CELLS, *(cell_len(sanitize(row.label_note)) for row in self.rows), 0)
        left = name + 1 + VALUE_CELLS + 1 + note + 2
        cells = _MIN_HISTORY_CELLS if self.frame.over_time else self._gpus * _CELL_STEP - 1
        self._left_cells = max(0, min(left, self._width - cells))
        columns = zip(self.frame.facts, *(row.facts for row in self.rows), strict=False)
        self._fact_widths = [
            _FACT_GAP + max(cell_len(sanitize(text)) for text in column) for column in columns
        ]
        # A single GPU's share is the mean beside its name.
        numbers = self._gpus * _NUMBER_STEP
        fits = self._gpus > 1 and left + numbers + sum(self._fact_widths) <= self._width
        self._cell_step = _NUMBER_STEP if fits else _CELL_STEP
        cells = _MIN_HISTORY_CELLS * 2 if self.frame.over_time else self._gpus * self._cell_step
        if self._left_cells + cells + sum(self._fact_widths) > self._width:
            self._fact_widths = []
        name_room = self._left_cells - VALUE_CELLS - 2
        # A sign next to a node is more useful than a few more letters of its name.
        name_room -= SIGN_CELLS if name_room > MIN_NAME_CELLS else 0
        self._labels = abbreviated_names(self._names, max(0, min(name, name_room)))
        self._label_cells = max(0, min(name, name_room))

    @property
    def has_footer(self) -> bool:
        """True if the last line shows details of the node under the cursor, or a time axis."""
        return bool(self.rows) and (self.is_dense or self.frame.over_time)

    @property
    def lines(self) -> int:
        return HEADER_LINES + -(-len(self.rows) // self.across) + self.has_footer

    def node_at(self, line: int, column: int) -> int | None:
        if not self.is_dense:
            return line
        position = (column - self._label_cells) // self._node_cells
        return line * self.across + position if 0 <= position < self.across else None

    # Lines

    def header(self) -> list[Glyph]:
        width, title = self._width, sanitize(self.frame.title)
        if self.is_dense:
            return [
                (clip(title, width), "title"),
                (clip(self._summary(), max(0, width - cell_len(title))), "value"),
            ]
        # No GPU numbers are above a history or a single GPU, so the title may extend over it.
        left = self._left_cells + (self._line_cells if self._has_lines else 0)
        shown = clip(title, max(0, left - 1)) if self._gpus or self.frame.over_time else clip(title, width)
        runs: list[Glyph] = [(shown + " " * (left - cell_len(shown)), "title")]
        if not self._has_lines:
            # Two-digit GPU numbers would touch: show only the last digit.
            numbers = (f"{gpu % 10}".ljust(self._cell_step) for gpu in range(self._gpus))
            runs.append(("".join(numbers), "header"))
        return [*runs, (self._facts(self.frame.facts), "header")]

    def _summary(self) -> str:
        measured = [row for row in self.rows if row.mean is not None]
        if not measured:
            return f"  {counted(len(self.rows), 'node')}"
        mean = sum(row.mean for row in measured if row.mean is not None) / len(measured)
        worst = (min if self.frame.low_is_bad else max)(measured, key=lambda row: row.mean or 0.0)
        word = "low" if self.frame.low_is_bad else "high"
        counts = Counter(row.sign for row in self.rows if row.sign)
        signs = "".join(f"  {sign}{count}" for sign, count in counts.items())
        remark = f"  {sanitize(self.frame.remark)}" if self.frame.remark else ""
        # Put the signs of unhealthy nodes first: overflow is cut off on the right.
        return f" {percent(mean)}{signs}  {word} {percent(worst.mean)} {sanitize(worst.name)}{remark}"

    def footer(self, index: int) -> list[Glyph]:
        """Return the line below the nodes: the time axis, or details of a node."""
        if self.frame.over_time:
            begin = f"-{duration_label(self.frame.end - self.frame.start, units=2)}"
            axis = begin + self.frame.end_label.rjust(self._line_cells - len(begin))
            return [(" " * self._left_cells + axis, "header")]
        row = self.rows[index]
        name, note = clip(self._names[index], MAX_NAME_CELLS), sanitize(row.label_note)
        room = self._width - cell_len(f"{name} {percent(row.mean)} {note}")
        facts = ""
        for title, value in zip(self.frame.facts, row.facts, strict=False):
            fact = f"  {title} {sanitize(value)}"
            facts += fact if cell_len(facts + fact) <= room else ""  # never cut a fact
        return [
            (f"{name} ", "name"),
            (percent(row.mean), "value"),
            (f" {note}" if note else "", "note"),
            (facts, "header"),
        ]

    def line(self, number: int, cursor: int | None) -> list[Glyph]:
        """Return a line of nodes, counted from 0; ``cursor`` is the highlighted node."""
        if not self.is_dense:
            return self._row(number, cursor)
        first = number * self.across
        label = self._labels[first]
        runs: list[Glyph] = [(label.rjust(self._label_cells - 1) + " ", "header")]
        for index, row in enumerate(self.rows[first : first + self.across], first):
            cells = braille_bars(row.values)
            runs += [(glyph, f"{style} cursor" if index == cursor else style) for glyph, style in cells]
            runs.append(((row.sign or " ").rjust(self._node_cells - len(cells)), "note"))
        return runs

    @property
    def _has_lines(self) -> bool:
        """True if each row has a history, or a bar for its only GPU, which takes the spare width."""
        return self.frame.over_time or self._gpus == 1

    @property
    def _line_cells(self) -> int:
        return max(0, self._width - self._left_cells - sum(self._fact_widths))

    def _facts(self, texts: Sequence[str]) -> str:
        facts = zip(self._fact_widths, map(sanitize, texts), strict=False)
        return "".join(" " * (width - cell_len(text)) + text for width, text in facts)

    def _row(self, index: int, cursor: int | None) -> list[Glyph]:
        row, name, note = self.rows[index], self._labels[index], sanitize(self.rows[index].label_note)
        rest = self._left_cells - self._label_cells - 1 - VALUE_CELLS
        if cell_len(note) > rest - 2:
            note = row.sign if rest >= 2 else ""  # the sign is enough, even right next to the cells
        beside = f" {note}" if note else ""
        runs: list[Glyph] = [
            (name, "cursor" if index == cursor else "name"),
            (" " * (self._label_cells - cell_len(name) + 1), "name"),
            (clip(percent(row.mean), VALUE_CELLS).rjust(VALUE_CELLS), "value"),
            (beside + " " * (rest - cell_len(beside)), "note"),
        ]
        if self.frame.over_time:
            runs += self._history(row, self._line_cells)
        elif self._gpus == 1:
            used, unused = thin_bar(row.mean or 0.0, self._line_cells)
            runs += [(used, heat(row.mean)), (unused, "unknown")]
        else:
            for share in row.values:
                glyph, style = bar(share)
                if self._cell_step == _NUMBER_STEP:
                    runs += [(glyph, style), (f"{_number(share):>3} ", "header")]
                else:
                    runs.append((f"{glyph} ", style))
            runs.append((" " * (self._cell_step * (self._gpus - len(row.values))), "name"))
        return [*runs, (self._facts(row.facts), "name")]

    def _history(self, row: MatrixRow, cells: int) -> list[Glyph]:
        ranges: tuple[Range | None, ...] = reduce_columns(
            row.history, self.frame.start, self.frame.end, cells
        )
        pick = 0 if self.frame.low_is_bad else 1
        cell_s = (self.frame.end - self.frame.start) / max(1, cells)
        glyphs = []
        for number, value_range in enumerate(ranges):
            # If samples are sparser than cells, use the nearest sample.
            nearest = value_at(row.history, self.frame.start + (number + 0.5) * cell_s)
            value = nearest if value_range is None else value_range[pick]
            glyphs.append(bar(None if value is None else value / self.frame.full))
        return glyphs
