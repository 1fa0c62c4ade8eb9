"""The node × GPU matrix: a line per node while they fit, else several nodes per line, two GPUs per cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.analysis.series import EMPTY, Series, column_extremes
from tui.text.names import abbreviated_names
from tui.text.sanitize import clip, sanitize
from tui.text.units import counted, percent, thin_bar
from tui.widgets.charts.braille import CHARACTERS
from tui.widgets.charts.legend import short_names
from tui.widgets.charts.spec import value_at
from tui.widgets.charts.ticks import duration_label
from tui.widgets.cursor_rows import HEADING_LINES, CursorRows
from tui.widgets.tones import HEAT, HEAT_LEVELS

Shares = tuple[float | None, ...]
"""Shares (0–1), one per GPU; None if unknown."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A node (or a GPU, if there is only one node).

    Attributes:
        label_note: A sign and a word such as "▲ slow"; empty for none. Only the sign is shown if space is
            scarce.
        history: Its values over time; ``Frame.full`` is a share of 1. Drawn if ``Frame.over_time``.
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
    ``facts`` are the headings of the columns beside the cells. ``live`` is False for an ended run, whose
    cells all have the color of a busy GPU: nothing needs attention. ``empty_text`` is shown without nodes.
    """

    title: str = ""
    over_time: bool = False
    start: float = 0.0
    end: float = 0.0
    full: float = 1.0
    live: bool = True
    low_is_bad: bool = True
    facts: tuple[str, ...] = ()
    empty_text: str = "reading…"


Glyph = tuple[str, str]
"""Text and the name of its style."""

_BLOCKS = "▁▂▃▄▅▆▇▇"  # no full block, which would merge with that of the next node
_UNKNOWN = "·"


def _level(share: float | None, levels: int) -> int:
    """Return the index of a share among ``levels`` equal parts of 0 … 1; -1 if the share is unknown."""
    if share is None or isnan(share):
        return -1
    return min(levels - 1, int(max(share, 0.0) * levels))


def heat_style(share: float | None) -> str:
    level = _level(share, HEAT_LEVELS)
    return "unknown" if level < 0 else f"heat-{level}"


def bar(share: float | None) -> Glyph:
    level = _level(share, len(_BLOCKS))
    return _UNKNOWN if level < 0 else _BLOCKS[level], heat_style(share)


def braille_bars(shares: Shares) -> list[Glyph]:
    """Return two GPUs per cell, each one to four dots high, in the heat color of the lower of the two."""
    glyphs = []
    for at in range(0, len(shares), 2):
        pair = (*shares[at : at + 2], None)[:2]
        left, right = ((1 << 1 + _level(share, 4)) - 1 for share in pair)
        glyph = CHARACTERS[left << 4 | right] if left or right else _UNKNOWN
        lowest = min((share for share in pair if share is not None and share == share), default=None)
        glyphs.append((glyph, heat_style(lowest)))
    return glyphs


MAX_NAME_CELLS = 20
VALUE_CELLS = 4  # fits "100%"
_CELL_STEP = 2  # a cell and the space after it
_NUMBER_STEP = 5  # a cell with its share as a number, if there is room for all
_MIN_HISTORY_CELLS = 10


class NodeList:
    """The layout with a line for each node: its mean, its note, its GPUs or its history, and facts."""

    across = 1
    """Number of nodes on a line."""

    def __init__(self, rows: Sequence[MatrixRow], frame: Frame, width: int) -> None:
        self._rows, self._frame, self._width = rows, frame, width
        self._gpus = max((len(row.values) for row in rows), default=0)
        # A history, or a bar for the only GPU, takes the spare width.
        self._fills_width = frame.over_time or self._gpus == 1
        self.has_footer = bool(rows) and frame.over_time
        self._place_columns()

    def _place_columns(self) -> None:
        rows, frame, width = self._rows, self._frame, self._width
        names = [sanitize(row.name) for row in rows]
        name = min(MAX_NAME_CELLS, max(map(cell_len, names), default=0))
        # So that columns of GPUs don't move when a note such as "▲ slow" comes or goes.
        reserved = 6 if self._gpus > 1 else 0
        note = max([reserved, *(cell_len(sanitize(row.label_note)) for row in rows)])
        left = name + 1 + VALUE_CELLS + 1 + note + 2
        columns = zip(frame.facts, *(row.facts for row in rows), strict=False)
        self._fact_widths = [2 + max(cell_len(sanitize(text)) for text in column) for column in columns]
        facts = sum(self._fact_widths)
        # Numbers are not needed for a single GPU: its share is the mean beside its name.
        fits = self._gpus > 1 and left + self._gpus * _NUMBER_STEP + facts <= width
        self._cell_step = _NUMBER_STEP if fits else _CELL_STEP
        least = _MIN_HISTORY_CELLS if frame.over_time else self._gpus * _CELL_STEP - 1
        self._left_cells = max(0, min(left, width - least))
        cells = 2 * _MIN_HISTORY_CELLS if frame.over_time else self._gpus * self._cell_step
        while self._fact_widths and self._left_cells + cells + sum(self._fact_widths) > width:
            self._fact_widths.pop()
        name_room = self._left_cells - VALUE_CELLS - 2
        # A sign next to a node is more useful than a few more letters of its name.
        name_room -= 2 if name_room > 6 else 0
        self._label_cells = max(0, min(name, name_room))
        self._labels = abbreviated_names(names, self._label_cells)
        self._line_cells = max(0, width - self._left_cells - sum(self._fact_widths))

    def node_at(self, line: int, _column: int) -> int:
        return line

    def header(self) -> list[Glyph]:
        title, left = sanitize(self._frame.title), self._left_cells
        if not self._rows:
            return [(clip(title, self._width), "title")]
        # No GPU numbers are above a history or a single GPU, so the title may extend over it.
        left += self._line_cells if self._fills_width else 0
        shown = clip(title, max(0, left - 1))
        # Two-digit GPU numbers would touch: show only the last digit.
        gpus = range(0 if self._fills_width else self._gpus)
        numbers = "".join(f"{gpu % 10}".ljust(self._cell_step) for gpu in gpus)
        return [
            (shown + " " * (left - cell_len(shown)), "title"),
            (numbers + self._facts(self._frame.facts), "header"),
        ]

    def footer(self, _index: int) -> list[Glyph]:
        """Return the time axis."""
        frame = self._frame
        begin = f"-{duration_label(frame.end - frame.start, max_units=2)}"
        end = "now" if frame.live else "end"
        return [(" " * self._left_cells + begin + end.rjust(self._line_cells - len(begin)), "header")]

    def _facts(self, texts: Sequence[str]) -> str:
        facts = zip(self._fact_widths, map(sanitize, texts), strict=False)
        return "".join(" " * (width - cell_len(text)) + text for width, text in facts)

    def line(self, index: int, cursor: int | None) -> list[Glyph]:
        """Return the line of a node; ``cursor`` is the highlighted node."""
        row, name, note = self._rows[index], self._labels[index], sanitize(self._rows[index].label_note)
        rest = self._left_cells - self._label_cells - 1 - VALUE_CELLS
        if cell_len(note) > rest - 2:
            note = row.sign if rest >= 2 else ""  # without room, show only the sign, right next to the cells
        beside = f" {note}" if note else ""
        return [
            (name, "cursor" if index == cursor else "name"),
            (" " * (self._label_cells - cell_len(name) + 1), "name"),
            (clip(percent(row.mean), VALUE_CELLS).rjust(VALUE_CELLS), "value"),
            (beside + " " * (rest - cell_len(beside)), "note"),
            *self._cells(row),
            (self._facts(row.facts), "name"),
        ]

    def _cells(self, row: MatrixRow) -> list[Glyph]:
        if self._frame.over_time:
            return self._history(row)
        if self._gpus == 1:
            used, unused = thin_bar(row.mean or 0.0, self._line_cells)
            return [(used, heat_style(row.mean)), (unused, "unknown")]
        glyphs: list[Glyph] = []
        for share in row.values:
            glyph, style = bar(share)
            # A node's mean may be at the edge of two colors: GPUs close to it have its color.
            if share is not None and row.mean is not None and abs(share - row.mean) < 0.1:
                style = heat_style(row.mean)
            number = f"{percent(share).rstrip('%'):>3} " if self._cell_step == _NUMBER_STEP else ""
            glyphs += [(glyph if number else f"{glyph} ", style), (number, "header")]
        return [*glyphs, (" " * (self._cell_step * (self._gpus - len(row.values))), "name")]

    def _history(self, row: MatrixRow) -> list[Glyph]:
        frame, cells = self._frame, self._line_cells
        pick = 0 if frame.low_is_bad else 1
        cell_s = (frame.end - frame.start) / max(1, cells)
        glyphs = []
        for number, values in enumerate(column_extremes(row.history, frame.start, frame.end, cells)):
            # If samples are sparser than cells, use the nearest sample.
            nearest = value_at(row.history, frame.start + (number + 0.5) * cell_s)
            value = nearest if values is None else values[pick]
            glyphs.append(bar(None if value is None else value / frame.full))
        return glyphs


def _facts_that_fit(facts: Iterable[str], room: int) -> str:
    """Return the facts that fit, none of them cut."""
    shown = ""
    for fact in facts:
        shown += fact if cell_len(shown + fact) <= room else ""
    return shown


class NodeGrid:
    """The layout with several nodes on a line, two GPUs per cell, each node followed by its sign."""

    has_footer = True

    def __init__(self, rows: Sequence[MatrixRow], frame: Frame, width: int) -> None:
        self._rows, self._frame, self._width = rows, frame, width
        self._names = [sanitize(row.name) for row in rows]
        self._labels = abbreviated_names(short_names(self._names), MAX_NAME_CELLS)
        self._label_cells = max(map(cell_len, self._labels)) + 1
        self._node_cells = -(-max(len(row.values) for row in rows) // 2) + 1
        self.across = max(1, min(len(rows), (width - self._label_cells) // self._node_cells))

    def node_at(self, line: int, column: int) -> int | None:
        position = (column - self._label_cells) // self._node_cells
        return line * self.across + position if 0 <= position < self.across else None

    def header(self) -> list[Glyph]:
        title = clip(sanitize(self._frame.title), self._width)
        return [(title, "title"), (_facts_that_fit(self._summary(), self._width - cell_len(title)), "value")]

    def _summary(self) -> Sequence[str]:
        rows, frame = self._rows, self._frame
        means = [(row.mean, sanitize(row.name)) for row in rows if row.mean is not None]
        if not means:
            return [f"  {counted(len(rows), 'node')}"]
        word = "low" if frame.low_is_bad else "high"
        worst, name = (min if frame.low_is_bad else max)(means, key=lambda of_node: of_node[0])
        counts = Counter(row.sign for row in rows if row.sign)
        # Put the signs of unhealthy nodes first: what does not fit is left out on the right.
        signs = "".join(f"  {sign}{count}" for sign, count in counts.items())
        mean = percent(sum(mean for mean, _ in means) / len(means))
        return [f" {mean}", signs, f"  {word} {percent(worst)} {name}"]

    def footer(self, index: int) -> list[Glyph]:
        """Return the details of a node."""
        row = self._rows[index]
        name, note = clip(self._names[index], MAX_NAME_CELLS), sanitize(row.label_note)
        room = self._width - cell_len(f"{name} {percent(row.mean)} {note}")
        titled = zip(self._frame.facts, row.facts, strict=False)
        facts = [f"  {title} {sanitize(value)}" for title, value in titled]
        return [
            (f"{name} ", "name"),
            (percent(row.mean), "value"),
            (f" {note}" if note else "", "note"),
            (_facts_that_fit(facts, room), "header"),
        ]

    def line(self, number: int, cursor: int | None) -> list[Glyph]:
        """Return a line of nodes, counted from 0; ``cursor`` is the highlighted node."""
        first = number * self.across
        runs: list[Glyph] = [(self._labels[first].rjust(self._label_cells - 1) + " ", "header")]
        for index, row in enumerate(self._rows[first : first + self.across], first):
            cells = braille_bars(row.values)
            runs += [(glyph, f"{style} cursor" if index == cursor else style) for glyph, style in cells]
            runs.append(((row.sign or " ").rjust(self._node_cells - len(cells)), "note"))
        return runs


def line_count(layout: NodeList | NodeGrid, nodes: int) -> int:
    return HEADING_LINES + -(-nodes // layout.across) + layout.has_footer


def lay_out(rows: Sequence[MatrixRow], frame: Frame, width: int, height: int) -> NodeList | NodeGrid:
    has_gpus = any(row.values for row in rows)
    is_dense = has_gpus and not frame.over_time and HEADING_LINES + len(rows) > height
    kind = NodeGrid if is_dense else NodeList
    layout = kind(rows, frame, width)
    if line_count(layout, len(rows)) > height:
        layout = kind(rows, frame, width - 1)  # the scroll bar would cover the last cells
    return layout


_STYLES = ("title", "header", "name", "value", "note", "unknown", "empty", "cursor")


class GpuMatrix(CursorRows):
    """A heat map of nodes × GPUs that shows values by cell height and color.

    Nodes get a line each while they fit, then share lines and show two GPUs per cell; 64 nodes of 8 GPUs
    fit into 44 × 10 cells. Larger matrices scroll, with a fixed header and a footer for the node under the
    cursor. Enter or a click posts `NodeSelected`.
    """

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"gpu-matrix--{name}" for name in _STYLES),
        *HEAT.classes("gpu-matrix--heat"),
    }

    DEFAULT_CSS = """
    GpuMatrix {
        width: 1fr;
        height: 1fr;
        min-height: 2;
        & > .gpu-matrix--title { text-style: bold; }
        & > .gpu-matrix--header { color: $text-muted; }
        & > .gpu-matrix--note { color: $text-warning; }
        & > .gpu-matrix--unknown { color: $text-muted; }
        & > .gpu-matrix--empty { color: $text-muted; text-style: italic; }
        & > .gpu-matrix--cursor { text-style: bold underline; }
    }
    """ + HEAT.css("GpuMatrix", "gpu-matrix--heat")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move_across(1)", "Node to the right", show=False, id="matrix.right"),
        Binding("left,h", "move_across(-1)", "Node to the left", show=False, id="matrix.left"),
        Binding("enter", "select", "Select node", show=False, id="matrix.select"),
    ]

    @dataclass
    class NodeSelected(Message):
        name: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._frame = Frame()
        self._rows: Sequence[MatrixRow] = ()
        self._layout = lay_out(self._rows, self._frame, 0, 0)
        self.set_reactive(CursorRows.blurred_cursor, False)

    @property
    def row_count(self) -> int:
        return len(self._rows)

    @property
    def selected(self) -> str | None:
        return self._rows[self._cursor].name if self._rows else None

    def set_data(self, rows: Sequence[MatrixRow], frame: Frame | None = None) -> None:
        """Show these nodes; the cursor stays on its node."""
        name, count = self.selected, len(self._rows)
        self._rows = rows
        self._frame = frame if frame is not None else self._frame
        self._cursor = self._index_of(name) or 0
        self.fit()
        self.refresh(layout=len(self._rows) != count)

    def _index_of(self, name: str | None) -> int | None:
        return next((index for index, row in enumerate(self._rows) if row.name == name), None)

    def fit(self) -> None:
        """Lay out again after the space around the matrix changed without a resize of the matrix."""
        self._layout = lay_out(self._rows, self._frame, self.size.width, self._height_at_most())
        self.virtual_size = Size(self.size.width, line_count(self._layout, len(self._rows)))
        self.refresh()

    def _height_at_most(self) -> int:
        """Return the available height: the parent's if the matrix has automatic height.

        Its own height would reflect the previous rows: after growing from a few nodes to many, the matrix
        would stay at small cells without names.
        """
        around = self.parent.size.height if isinstance(self.parent, Widget) else 0
        if self.styles.height is not None and self.styles.height.is_auto and around:
            return around
        return self.size.height or 10_000  # before the first layout: a line for each node

    def _on_resize(self, event: events.Resize) -> None:
        self.fit()

    # The cursor

    def _line_of(self, index: int) -> int:
        return index // self._layout.across

    @property
    def footer_lines(self) -> int:
        return int(self._layout.has_footer)

    def _cursor_moved(self) -> None:
        self.refresh()

    def point_at(self, name: str | None) -> None:
        """Put the cursor on a chosen node and show it without focus too; None chooses no node."""
        index = self._index_of(name)
        self.blurred_cursor = index is not None
        if index is not None:
            self._move_cursor(index)

    def action_cursor_by(self, lines: int) -> None:
        super().action_cursor_by(lines * self._layout.across)

    def action_move_across(self, nodes: int) -> None:
        self._move_cursor(self._cursor + nodes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave left and right to the screen while each line holds one node."""
        return action != "move_across" or self._layout.across > 1

    def action_select(self) -> None:
        if self.selected is not None:
            self.post_message(self.NodeSelected(self.selected))

    def _row_at(self, x: int, y: int) -> int | None:
        index = self._layout.node_at(y - HEADING_LINES + self.scroll_offset.y, x)
        is_node = HEADING_LINES <= y < self.size.height - self.footer_lines
        return index if is_node and index is not None and index < len(self._rows) else None

    def _row_clicked(self, *, again: bool) -> None:
        self.action_select()

    # Painting

    def _style(self, name: str) -> Style:
        """Return the style of a run; several names separated by spaces are combined."""
        style = Style.null()
        for part in name.split(" "):
            is_ended = part.startswith("heat-") and not self._frame.live
            shown = heat_style(1.0) if is_ended else part
            style += self.get_component_rich_style(f"gpu-matrix--{shown}", partial=shown == "cursor")
        return style

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        layout = self._layout
        line = y - HEADING_LINES + self.scroll_offset.y
        runs: list[Glyph] = []
        if y < HEADING_LINES:
            runs = layout.header()
        elif not self._rows and y == max(HEADING_LINES, height // 2):
            text = clip(self._frame.empty_text, width)
            runs = [(" " * ((width - len(text)) // 2) + text, "empty")]
        elif layout.has_footer and y == height - 1 and height > HEADING_LINES + 1:
            marked = next((index for index, row in enumerate(self._rows) if row.sign), self._cursor)
            runs = layout.footer(self._cursor if self.has_focus else marked)
        elif line * layout.across < len(self._rows):
            runs = layout.line(line, self._cursor if self.has_focus or self.blurred_cursor else None)
        strip = Strip([Segment(text, self._style(name)) for text, name in runs if text])
        return strip.adjust_cell_length(width, self._style("name"))
