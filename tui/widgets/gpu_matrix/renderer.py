"""Lay out and draw the node × GPU matrix: as dense as needed for all nodes to fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from rich.cells import cell_len

from tui.analysis.series import EMPTY, Range, Series, reduce_columns
from tui.text.names import abbreviated_names
from tui.text.sanitize import clip, sanitize
from tui.text.units import UNKNOWN, counted, percent
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


Density = Literal["lines", "blocks", "braille"]
"""`lines`: one node per line, with name, mean and note.

`blocks`: several nodes per line, a block per GPU. `braille`: several nodes per line, two GPUs per cell.
"""

LABEL_GAP = 1
GAP_CELLS = 1
"""Gap between nodes on a line; it holds the node's sign."""


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """Positions of the nodes.

    A line holds ``across`` nodes, each ``node_cells`` wide (gap included), after ``label_cells``;
    ``lines`` is the total number of lines.
    """

    density: Density
    across: int
    node_cells: int
    label_cells: int
    lines: int

    def line_of(self, index: int) -> int:
        return index // self.across

    def node_at(self, line: int, column: int) -> int | None:
        if self.density == "lines":
            return line
        position = (column - self.label_cells) // self.node_cells
        return line * self.across + position if 0 <= position < self.across else None


def shape_for(nodes: int, gpus: int, label_cells: int, width: int, height: int) -> MatrixShape:
    """Return the least dense layout in which all nodes, of up to ``gpus`` each, fit; else the densest."""
    plain = MatrixShape("lines", 1, width, 0, nodes)
    if nodes <= height or gpus == 0 or nodes == 0:
        return plain
    best = plain
    for density, cells in (("blocks", gpus), ("braille", -(-gpus // 2))):
        node_cells = cells + GAP_CELLS
        across = max(0, (width - label_cells - LABEL_GAP) // node_cells)
        across = _round(min(across, nodes))
        if not across:
            continue
        best = MatrixShape(density, across, node_cells, label_cells + LABEL_GAP, -(-nodes // across))  # type: ignore[arg-type]
        if best.lines <= height:
            return best
    return best


def _round(across: int) -> int:
    """Round down to a number whose multiples are easy to count: 4, 8, 10, 16 and so on."""
    return max((many for many in (1, 2, 4, 5, 8, 10, 16, 20, 32, 64) if many <= across), default=0)


MAX_NAME_CELLS = 20
HEADER_LINES = 1
SCROLL_BAR_CELLS = 1  # must match the widget's CSS
VALUE_CELLS = 4  # fits "100%"
NOTE_CELLS = 6
"""Reserved for notes such as "▲ slow", so that cells don't move when a note comes or goes."""
SIGN_CELLS = 2
"""Always reserved for the note's sign and the space before it."""
MIN_MATRIX_NAME_CELLS = 6
_BETWEEN = 1
_CELL_STEP = 2  # a cell and the space after it
_NUMBER_STEP = 5  # a cell with its share as a number, if there is room for all
_FACT_GAP = 2
_MIN_HISTORY_CELLS = 10


class MatrixRenderer:
    """Renders the lines of a matrix from rows, frame and size."""

    def __init__(self) -> None:
        self.rows: tuple[MatrixRow, ...] = ()
        self.frame = Frame()
        self.shape = MatrixShape("lines", 1, 0, 0, 0)
        self._short: list[str] = []
        self._names: list[str] = []
        self._cut: tuple[tuple[list[str], int], dict[str, str]] = (([], 0), {})
        self._widths = (0, 0, 0)
        self._fact_widths: tuple[int, ...] = ()
        self._room = (0, 0)

    def lay_out(self, rows: tuple[MatrixRow, ...], frame: Frame, room: tuple[int, int]) -> bool:
        """Set the data and the available size; return True if lines moved."""
        gpus = max((len(row.values) for row in rows), default=0)
        names = [sanitize(row.name) for row in rows]
        widths = (
            min(MAX_NAME_CELLS, max(map(cell_len, names), default=0)),
            max(NOTE_CELLS, *(cell_len(sanitize(row.label_note)) for row in rows), 0),
            gpus,
        )
        facts = tuple(
            max(
                cell_len(title),
                *(cell_len(sanitize(row.facts[at])) for row in rows if at < len(row.facts)),
                0,
            )
            for at, title in enumerate(frame.facts)
        )
        short = names if frame.over_time else abbreviated_names(short_names(names), MAX_NAME_CELLS)
        label = min(MAX_NAME_CELLS, max(map(cell_len, short), default=0))
        shape = _shape(frame, len(rows), gpus, label, room)
        if HEADER_LINES + shape.lines + _has_footer(rows, frame, shape) > room[1]:
            room = (max(0, room[0] - SCROLL_BAR_CELLS), room[1])  # the scroll bar would cover the last cells
            shape = _shape(frame, len(rows), gpus, label, room)
        before = (self._widths, self._fact_widths, self.shape, self._room, len(self.rows))
        moved = before != (widths, facts, shape, room, len(rows)) or self.frame != frame
        self.rows, self.frame, self._room = rows, frame, room
        self._widths, self._fact_widths, self.shape = widths, facts, shape
        self._short, self._names = short, names
        return moved

    @property
    def has_footer(self) -> bool:
        """True if the last line shows details of the node under the cursor, or a time axis."""
        return _has_footer(self.rows, self.frame, self.shape)

    @property
    def lines(self) -> int:
        return HEADER_LINES + self.shape.lines + self.has_footer

    # Lines

    def header(self) -> list[Glyph]:
        width = self._room[0]
        title = sanitize(self.frame.title)
        if self.shape.density != "lines":
            return [
                (clip(title, width), "title"),
                (clip(self._summary(), max(0, width - cell_len(title))), "value"),
            ]
        left = self._left_cells()
        if not self._widths[2] and not self.frame.over_time:
            return [(clip(title, width), "title")]
        cells = self._cell_room(left)
        if self.frame.over_time:
            left += cells  # no GPU numbers above a history, so the title may extend over it
        shown = clip(title, max(0, left - _BETWEEN))
        runs: list[Glyph] = [(shown + " " * (left - cell_len(shown)), "title")]
        if not self.frame.over_time:
            # Two-digit GPU numbers would touch: show only the last digit.
            step = self._cell_step()
            numbers = "".join(f"{gpu % 10}".ljust(step) for gpu in range(self._widths[2]))
            runs.append((numbers, "header"))
        if self._facts_fit(self._left_cells()):
            runs.append((self._facts(self.frame.facts), "header"))
        return runs

    def _summary(self) -> str:
        measured = [row for row in self.rows if row.mean is not None]
        if not measured:
            return f"  {counted(len(self.rows), 'node')}"
        mean = sum(row.mean for row in measured if row.mean is not None) / len(measured)
        worst = (min if self.frame.low_is_bad else max)(measured, key=lambda row: row.mean or 0.0)
        word = "low" if self.frame.low_is_bad else "high"
        marked = [row for row in self.rows if row.sign]
        signs = "".join(
            f"  {sign}{sum(row.sign == sign for row in marked)}"
            for sign in dict.fromkeys(row.sign for row in marked)
        )
        remark = f"  {sanitize(self.frame.remark)}" if self.frame.remark else ""
        # Put the signs of unhealthy nodes first: overflow is cut off on the right.
        return f" {percent(mean)}{signs}  {word} {percent(worst.mean)} {sanitize(worst.name)}{remark}"

    def footer(self, cursor: str | None) -> list[Glyph]:
        """Return the line below the nodes: the time axis, or details of the node under the cursor."""
        if self.frame.over_time:
            left = self._left_cells()
            cells = self._cell_room(left)
            begin = f"-{duration_label(self.frame.end - self.frame.start, units=2)}"
            gap = cells - len(begin) - len(self.frame.end_label)
            axis = begin + " " * gap + self.frame.end_label if gap > 0 else ""
            return [(" " * left + axis, "header")]
        row = next((row for row in self.rows if row.name == cursor), self.rows[0])
        name = self._name(row, MAX_NAME_CELLS)
        note = sanitize(row.label_note)
        room = self._room[0] - cell_len(f"{name} {percent(row.mean)} {note}")
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

    def line(self, number: int, cursor: str | None) -> list[Glyph]:
        """Return a line of nodes, counted from 0; ``cursor`` is the name of the highlighted node."""
        if self.shape.density == "lines":
            return self._row(self.rows[number], cursor) if number < len(self.rows) else []
        first = number * self.shape.across
        rows = self.rows[first : first + self.shape.across]
        if not rows:
            return []
        label = clip(self._short[first], self.shape.label_cells - 1)
        runs: list[Glyph] = [(label.rjust(self.shape.label_cells - 1) + " ", "header")]
        for row in rows:
            cells = (
                [bar(value) for value in row.values]
                if self.shape.density == "blocks"
                else braille_bars(row.values)
            )
            marked = row.name == cursor
            runs += [(glyph, f"{style} cursor" if marked else style) for glyph, style in cells]
            rest = self.shape.node_cells - len(cells) - 1
            runs.append((" " * rest + (row.sign or " "), "note"))
        return runs

    # One line per node

    def _name(self, row: MatrixRow, cells: int) -> str:
        key = (self._names, cells)
        if self._cut[0] != key:
            self._cut = (key, dict(zip(self._names, abbreviated_names(self._names, cells), strict=True)))
        return self._cut[1][sanitize(row.name)]

    def _wanted_left_cells(self) -> int:
        name, note, _ = self._widths
        return name + _BETWEEN + VALUE_CELLS + _BETWEEN + (note + _BETWEEN if note else 0) + _BETWEEN

    def _cell_step(self) -> int:
        """Return the cells from one GPU to the next; a single GPU's share is the mean beside its name."""
        gpus = self._widths[2]
        cells = self._wanted_left_cells() + gpus * _NUMBER_STEP + self._facts_cells()
        return _NUMBER_STEP if gpus > 1 and cells <= self._room[0] else _CELL_STEP

    def _left_cells(self) -> int:
        """Return the number of cells left of the heat cells; names are shortened first if space is tight."""
        gpus = self._widths[2]
        left_cells = self._wanted_left_cells()
        cells = (
            _MIN_HISTORY_CELLS if self.frame.over_time else gpus * _CELL_STEP - 1
        )  # no space after the last
        return max(0, min(left_cells, self._room[0] - cells))

    def _facts_cells(self) -> int:
        return sum(width + _FACT_GAP for width in self._fact_widths)

    def _facts_fit(self, left: int) -> bool:
        cells = _MIN_HISTORY_CELLS * 2 if self.frame.over_time else self._widths[2] * self._cell_step()
        return bool(self._fact_widths) and left + cells + self._facts_cells() <= self._room[0]

    def _cell_room(self, left: int) -> int:
        return max(0, self._room[0] - left - (self._facts_cells() if self._facts_fit(left) else 0))

    def _facts(self, texts: Sequence[str]) -> str:
        return "".join(
            " " * (_FACT_GAP + width - cell_len(text)) + text
            for width, text in zip(self._fact_widths, map(sanitize, texts), strict=False)
        )

    def _row(self, row: MatrixRow, cursor: str | None) -> list[Glyph]:
        left = self._left_cells()
        note = sanitize(row.label_note)
        # A sign next to a node is more useful than a few more letters of its name.
        sign_cells = SIGN_CELLS if left - VALUE_CELLS - 2 * _BETWEEN > MIN_MATRIX_NAME_CELLS else 0
        name_cells = min(self._widths[0], max(0, left - VALUE_CELLS - 2 * _BETWEEN - sign_cells))
        name = self._name(row, name_cells)
        value = clip(percent(row.mean), VALUE_CELLS).rjust(VALUE_CELLS)
        rest = left - name_cells - _BETWEEN - VALUE_CELLS
        if cell_len(note) > rest - 2 * _BETWEEN:
            note = row.sign if rest >= 2 else ""  # the sign is enough, even right next to the cells
        runs: list[Glyph]
        if rest >= 0:
            beside = " " + note if note else ""
            runs = [
                (name, "cursor" if row.name == cursor else "name"),
                (" " * (name_cells - cell_len(name) + _BETWEEN), "name"),
                (value, "value"),
                (beside + " " * (rest - cell_len(beside)), "note"),
            ]
        else:
            runs = [(clip(value, left).rjust(left), "value")]
        if self.frame.over_time:
            runs += self._history(row, self._cell_room(left))
        else:
            step = self._cell_step()
            for share in row.values:
                glyph, style = bar(share)
                runs.append((glyph if step > _CELL_STEP else f"{glyph} ", style))
                if step > _CELL_STEP:
                    runs.append((f"{_number(share):>3} ", "header"))
            runs.append((" " * (step * (self._widths[2] - len(row.values))), "name"))
        if self._facts_fit(left):
            runs.append((self._facts(row.facts), "name"))
        return runs

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


def _shape(frame: Frame, nodes: int, gpus: int, label: int, room: tuple[int, int]) -> MatrixShape:
    width, height = room
    if frame.over_time:
        return MatrixShape("lines", 1, width, 0, nodes)
    shape = shape_for(nodes, gpus, label, width, max(1, height - HEADER_LINES))
    if shape.density != "lines":  # the footer needs a line too
        shape = shape_for(nodes, gpus, label, width, max(1, height - HEADER_LINES - 1))
    return shape


def _has_footer(rows: Sequence[MatrixRow], frame: Frame, shape: MatrixShape) -> bool:
    return bool(rows) and (shape.density != "lines" or frame.over_time)
