"""The node × GPU matrix: a line per node if they fit, else several nodes on a line with two GPUs per cell."""

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

Fractions = tuple[float | None, ...]
"""A fraction from 0 to 1 for each GPU of a node, such as its utilization; None if unknown."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A node; or a GPU, if the job has only one node.

    Attributes:
        label_note: A sign and a word such as "▲ slow", or empty. Without room, only the sign is shown.
        values: The value of each GPU.
        mean: The mean of the values.
        history: The node's values over time, drawn if ``Frame.shows_history``; ``Frame.full`` counts as 1.
        facts: CPU, memory, disk … as text, in the order of ``Frame.facts``.
    """

    name: str
    label_note: str
    values: Fractions
    mean: float | None
    history: Series = EMPTY
    facts: tuple[str, ...] = ()

    @property
    def sign(self) -> str:
        return self.label_note[:1]


@dataclass(frozen=True, slots=True)
class Frame:
    """Display settings of a matrix.

    Attributes:
        shows_history: True to show the history of each node instead of its GPUs.
        start: Start of the histories, epoch seconds.
        end: End of the histories, epoch seconds.
        full: Value in a history that counts as 1.
        is_live: False for an ended run: all cells have the color of a busy GPU, as nothing needs attention.
        low_is_bad: True if each cell of a history shows the lowest value of its time range, not the highest.
        facts: Headings of the columns beside the cells.
        empty_text: Shown if there are no nodes.
    """

    title: str = ""
    shows_history: bool = False
    start: float = 0.0
    end: float = 0.0
    full: float = 1.0
    is_live: bool = True
    low_is_bad: bool = True
    facts: tuple[str, ...] = ()
    empty_text: str = "reading…"


Run = tuple[str, str]
"""A text and the name of its style."""

_BLOCKS = "▁▂▃▄▅▆▇▇"  # no full block, which would touch the block of the node below
_UNKNOWN = "·"


def _level(fraction: float | None, levels: int) -> int:
    """Return the level of a fraction (0 to 1), from 0 to ``levels`` - 1; -1 if the fraction is unknown."""
    if fraction is None or isnan(fraction):
        return -1
    return min(levels - 1, int(max(fraction, 0.0) * levels))


def heat_style(fraction: float | None) -> str:
    """Return the name of the style of a fraction: a heat color, or "unknown"."""
    level = _level(fraction, HEAT_LEVELS)
    return "unknown" if level < 0 else f"heat-{level}"


def bar(fraction: float | None) -> Run:
    """Return a block character that is as high as the fraction, in its heat color."""
    level = _level(fraction, len(_BLOCKS))
    return _UNKNOWN if level < 0 else _BLOCKS[level], heat_style(fraction)


def braille_bars(fractions: Fractions) -> list[Run]:
    """Return a cell for every two GPUs: bars of one to four dots, in the heat color of the lower value."""
    runs = []
    for index in range(0, len(fractions), 2):
        pair = (*fractions[index : index + 2], None)[:2]
        left, right = ((1 << 1 + _level(fraction, 4)) - 1 for fraction in pair)
        character = CHARACTERS[left << 4 | right] if left or right else _UNKNOWN
        known_fractions = [fraction for fraction in pair if fraction is not None and not isnan(fraction)]
        runs.append((character, heat_style(min(known_fractions, default=None))))
    return runs


MAX_NAME_CELLS = 20
VALUE_CELLS = 4  # fits "100%"
_CELL_STEP = 2  # a GPU: its cell and a space
_NUMBER_STEP = 5  # a GPU with its value as a number: its cell, three digits and a space
_MIN_HISTORY_CELLS = 10


class NodeList:
    """The layout with a line for each node: name, mean, note, GPUs (or history) and facts."""

    nodes_per_line = 1
    """Number of nodes on a line."""

    def __init__(self, rows: Sequence[MatrixRow], frame: Frame, width: int) -> None:
        self._rows, self._frame, self._width = rows, frame, width
        self._gpu_count = max((len(row.values) for row in rows), default=0)
        # A history, or the bar of a single GPU, is as wide as there is room.
        self._fills_width = frame.shows_history or self._gpu_count == 1
        self.has_footer = bool(rows) and frame.shows_history
        self._place_columns()

    def _place_columns(self) -> None:
        rows, frame, width = self._rows, self._frame, self._width
        names = [sanitize(row.name) for row in rows]
        name_cells = min(MAX_NAME_CELLS, max(map(cell_len, names), default=0))
        # Reserve cells for a note such as "▲ slow", so that the GPUs don't move when it appears.
        reserved = 6 if self._gpu_count > 1 else 0
        note_cells = max([reserved, *(cell_len(sanitize(row.label_note)) for row in rows)])
        left_cells = name_cells + 1 + VALUE_CELLS + 1 + note_cells + 2
        fact_columns = zip(frame.facts, *(row.facts for row in rows), strict=False)
        self._fact_widths = [2 + max(cell_len(sanitize(text)) for text in column) for column in fact_columns]
        facts_cells = sum(self._fact_widths)
        # A single GPU needs no number: its value is the mean beside the name.
        shows_values = (
            self._gpu_count > 1 and left_cells + self._gpu_count * _NUMBER_STEP + facts_cells <= width
        )
        self._cell_step = _NUMBER_STEP if shows_values else _CELL_STEP
        min_line_cells = _MIN_HISTORY_CELLS if frame.shows_history else self._gpu_count * _CELL_STEP - 1
        self._left_cells = max(0, min(left_cells, width - min_line_cells))
        line_cells = 2 * _MIN_HISTORY_CELLS if frame.shows_history else self._gpu_count * self._cell_step
        while self._fact_widths and self._left_cells + line_cells + sum(self._fact_widths) > width:
            self._fact_widths.pop()
        name_room = self._left_cells - VALUE_CELLS - 2
        # Leave room for the sign of a node: it is more useful than a few more letters of the name.
        name_room -= 2 if name_room > 6 else 0
        self._label_cells = max(0, min(name_cells, name_room))
        self._labels = abbreviated_names(names, self._label_cells)
        self._line_cells = max(0, width - self._left_cells - sum(self._fact_widths))

    def node_at(self, line: int, _column: int) -> int:
        return line

    def header(self) -> list[Run]:
        title, title_cells = sanitize(self._frame.title), self._left_cells
        if not self._rows:
            return [(clip(title, self._width), "title")]
        # Above a history or a single GPU are no GPU numbers, so the title may extend over it.
        title_cells += self._line_cells if self._fills_width else 0
        title = clip(title, max(0, title_cells - 1))
        # Only the last digit, because numbers of two digits would touch.
        gpus = range(0 if self._fills_width else self._gpu_count)
        numbers = "".join(f"{gpu % 10}".ljust(self._cell_step) for gpu in gpus)
        return [
            (title + " " * (title_cells - cell_len(title)), "title"),
            (numbers + self._facts(self._frame.facts), "header"),
        ]

    def footer(self, _index: int) -> list[Run]:
        """Return the time axis."""
        frame = self._frame
        begin = f"-{duration_label(frame.end - frame.start, max_units=2)}"
        end = "now" if frame.is_live else "end"
        return [(" " * self._left_cells + begin + end.rjust(self._line_cells - len(begin)), "header")]

    def _facts(self, texts: Sequence[str]) -> str:
        facts = zip(self._fact_widths, map(sanitize, texts), strict=False)
        return "".join(" " * (width - cell_len(text)) + text for width, text in facts)

    def line(self, index: int, cursor: int | None) -> list[Run]:
        """Return the line of a node; ``cursor`` is the index of the highlighted node."""
        row, name, note = self._rows[index], self._labels[index], sanitize(self._rows[index].label_note)
        note_room = self._left_cells - self._label_cells - 1 - VALUE_CELLS
        if cell_len(note) > note_room - 2:
            note = row.sign if note_room >= 2 else ""
        note = f" {note}" if note else ""
        return [
            (name, "cursor" if index == cursor else "name"),
            (" " * (self._label_cells - cell_len(name) + 1), "name"),
            (clip(percent(row.mean), VALUE_CELLS).rjust(VALUE_CELLS), "value"),
            (note + " " * (note_room - cell_len(note)), "note"),
            *self._cells(row),
            (self._facts(row.facts), "name"),
        ]

    def _cells(self, row: MatrixRow) -> list[Run]:
        if self._frame.shows_history:
            return self._history(row)
        if self._gpu_count == 1:
            filled_part, empty_part = thin_bar(row.mean or 0.0, self._line_cells)
            return [(filled_part, heat_style(row.mean)), (empty_part, "unknown")]
        runs: list[Run] = []
        for value in row.values:
            character, style = bar(value)
            # A GPU close to the node's mean has the mean's color, so that equal GPUs look equal even if their
            # values are at the border of two colors.
            if value is not None and row.mean is not None and abs(value - row.mean) < 0.1:
                style = heat_style(row.mean)
            number = f"{percent(value).rstrip('%'):>3} " if self._cell_step == _NUMBER_STEP else ""
            runs += [(character if number else f"{character} ", style), (number, "header")]
        return [*runs, (" " * (self._cell_step * (self._gpu_count - len(row.values))), "name")]

    def _history(self, row: MatrixRow) -> list[Run]:
        frame, cells = self._frame, self._line_cells
        cell_s = (frame.end - frame.start) / max(1, cells)
        runs = []
        for number, extremes in enumerate(column_extremes(row.history, frame.start, frame.end, cells)):
            if extremes is None:  # no sample in the time range of the cell
                value = value_at(row.history, frame.start + (number + 0.5) * cell_s)
            else:
                value = extremes[0 if frame.low_is_bad else 1]
            runs.append(bar(None if value is None else value / frame.full))
        return runs


def _facts_that_fit(facts: Iterable[str], room: int) -> str:
    """Join the facts that fit into ``room`` cells; skip the others."""
    text = ""
    for fact in facts:
        text += fact if cell_len(text + fact) <= room else ""
    return text


class NodeGrid:
    """The layout with several nodes on a line: two GPUs per cell, and the sign of a node after its cells."""

    has_footer = True

    def __init__(self, rows: Sequence[MatrixRow], frame: Frame, width: int) -> None:
        self._rows, self._frame, self._width = rows, frame, width
        self._names = [sanitize(row.name) for row in rows]
        self._labels = abbreviated_names(short_names(self._names), MAX_NAME_CELLS)
        self._label_cells = max(map(cell_len, self._labels)) + 1
        self._node_cells = -(-max(len(row.values) for row in rows) // 2) + 1
        self.nodes_per_line = max(1, min(len(rows), (width - self._label_cells) // self._node_cells))

    def node_at(self, line: int, column: int) -> int | None:
        position = (column - self._label_cells) // self._node_cells
        return line * self.nodes_per_line + position if 0 <= position < self.nodes_per_line else None

    def header(self) -> list[Run]:
        title = clip(sanitize(self._frame.title), self._width)
        return [(title, "title"), (_facts_that_fit(self._summary(), self._width - cell_len(title)), "value")]

    def _summary(self) -> Sequence[str]:
        rows, frame = self._rows, self._frame
        means = [(row.mean, sanitize(row.name)) for row in rows if row.mean is not None]
        if not means:
            return [f"  {counted(len(rows), 'node')}"]
        word = "low" if frame.low_is_bad else "high"
        worst, name = (min if frame.low_is_bad else max)(means, key=lambda mean_and_name: mean_and_name[0])
        counts = Counter(row.sign for row in rows if row.sign)
        # The signs of unhealthy nodes come before the worst node: without room, the end is left out.
        signs = "".join(f"  {sign}{count}" for sign, count in counts.items())
        mean = percent(sum(mean for mean, _ in means) / len(means))
        return [f" {mean}", signs, f"  {word} {percent(worst)} {name}"]

    def footer(self, index: int) -> list[Run]:
        """Return the name, the mean, the note and the facts of a node."""
        row = self._rows[index]
        name, note = clip(self._names[index], MAX_NAME_CELLS), sanitize(row.label_note)
        room = self._width - cell_len(f"{name} {percent(row.mean)} {note}")
        titled_facts = zip(self._frame.facts, row.facts, strict=False)
        facts = [f"  {title} {sanitize(value)}" for title, value in titled_facts]
        return [
            (f"{name} ", "name"),
            (percent(row.mean), "value"),
            (f" {note}" if note else "", "note"),
            (_facts_that_fit(facts, room), "header"),
        ]

    def line(self, number: int, cursor: int | None) -> list[Run]:
        """Return line ``number``, counted from 0; ``cursor`` is the index of the highlighted node."""
        first = number * self.nodes_per_line
        runs: list[Run] = [(self._labels[first].rjust(self._label_cells - 1) + " ", "header")]
        for index, row in enumerate(self._rows[first : first + self.nodes_per_line], first):
            bars = braille_bars(row.values)
            runs += [
                (character, f"{style} cursor" if index == cursor else style) for character, style in bars
            ]
            runs.append(((row.sign or " ").rjust(self._node_cells - len(bars)), "note"))
        return runs


def line_count(layout: NodeList | NodeGrid, nodes: int) -> int:
    return HEADING_LINES + -(-nodes // layout.nodes_per_line) + layout.has_footer


def choose_layout(rows: Sequence[MatrixRow], frame: Frame, width: int, height: int) -> NodeList | NodeGrid:
    """Return a ``NodeList``, or a ``NodeGrid`` if the nodes need more than ``height`` lines."""
    has_gpus = any(row.values for row in rows)
    needs_grid = has_gpus and not frame.shows_history and HEADING_LINES + len(rows) > height
    layout_class = NodeGrid if needs_grid else NodeList
    layout = layout_class(rows, frame, width)
    if line_count(layout, len(rows)) > height:
        layout = layout_class(rows, frame, width - 1)  # the last column is the scroll bar
    return layout


_STYLES = ("title", "header", "name", "value", "note", "unknown", "empty", "cursor")


class GpuMatrix(CursorRows):
    """A heat map of nodes × GPUs, which shows values by the height and the color of cells.

    Each node has a line of its own if all fit. If not, nodes share lines, with two GPUs per cell: 64 nodes of
    8 GPUs fit into 44 × 10 cells. A larger matrix scrolls between its header and a footer with the details
    of the node at the cursor. Enter or a click posts ``NodeSelected``.
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
        self._layout = choose_layout(self._rows, self._frame, 0, 0)
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
        """Lay out again; call it if the space around the matrix changed without a resize of the matrix."""
        self._layout = choose_layout(self._rows, self._frame, self.size.width, self._max_height())
        self.virtual_size = Size(self.size.width, line_count(self._layout, len(self._rows)))
        self.refresh()

    def _max_height(self) -> int:
        """Return the available height: that of the parent if the matrix has automatic height.

        The matrix's height would be that of its previous rows. When a few nodes become many, it would use the
        grid although there is room for a line per node.
        """
        parent_height = self.parent.size.height if isinstance(self.parent, Widget) else 0
        if self.styles.height is not None and self.styles.height.is_auto and parent_height:
            return parent_height
        return self.size.height or 10_000  # before the first layout: a line for each node

    def _on_resize(self, event: events.Resize) -> None:
        self.fit()

    # The cursor

    def _line_of(self, index: int) -> int:
        return index // self._layout.nodes_per_line

    @property
    def footer_lines(self) -> int:
        return int(self._layout.has_footer)

    def _cursor_moved(self) -> None:
        self.refresh()

    def point_at(self, name: str | None) -> None:
        """Put the cursor on a node, and show it even without focus; None hides the cursor again."""
        index = self._index_of(name)
        self.blurred_cursor = index is not None
        if index is not None:
            self._move_cursor(index)

    def action_cursor_by(self, lines: int) -> None:
        super().action_cursor_by(lines * self._layout.nodes_per_line)

    def action_move_across(self, nodes: int) -> None:
        self._move_cursor(self._cursor + nodes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While each line has one node, leave the keys left and right to the screen."""
        return action != "move_across" or self._layout.nodes_per_line > 1

    def action_select(self) -> None:
        if self.selected is not None:
            self.post_message(self.NodeSelected(self.selected))

    def _row_at(self, x: int, y: int) -> int | None:
        index = self._layout.node_at(y - HEADING_LINES + self.scroll_offset.y, x)
        is_node = HEADING_LINES <= y < self.size.height - self.footer_lines
        return index if is_node and index is not None and index < len(self._rows) else None

    def _row_clicked(self, *, was_at_cursor: bool) -> None:
        self.action_select()

    # Painting

    def _style(self, name: str) -> Style:
        """Return the style of a run; names that are separated by a space are combined."""
        style = Style.null()
        for style_name in name.split(" "):
            has_ended_heat = style_name.startswith("heat-") and not self._frame.is_live
            component = heat_style(1.0) if has_ended_heat else style_name
            style += self.get_component_rich_style(f"gpu-matrix--{component}", partial=component == "cursor")
        return style

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        layout = self._layout
        line = y - HEADING_LINES + self.scroll_offset.y
        runs: list[Run] = []
        if y < HEADING_LINES:
            runs = layout.header()
        elif not self._rows and y == max(HEADING_LINES, height // 2):
            text = clip(self._frame.empty_text, width)
            runs = [(" " * ((width - len(text)) // 2) + text, "empty")]
        elif layout.has_footer and y == height - 1 and height > HEADING_LINES + 1:
            # Without focus, the footer is about the first node with a finding.
            first_with_sign = next((index for index, row in enumerate(self._rows) if row.sign), self._cursor)
            runs = layout.footer(self._cursor if self.has_focus else first_with_sign)
        elif line * layout.nodes_per_line < len(self._rows):
            runs = layout.line(line, self._cursor if self.has_focus or self.blurred_cursor else None)
        strip = Strip([Segment(text, self._style(name)) for text, name in runs if text])
        return strip.adjust_cell_length(width, self._style("name"))
