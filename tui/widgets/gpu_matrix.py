"""Nodes by GPUs as cells whose height and colour show a share, such as utilisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.insight.text import clip, inert
from tui.insight.units import percent
from tui.widgets.charts.trace import BLOCKS, GAP, block
from tui.widgets.palette import HEAT_LEVELS, heat_classes, heat_css

_STYLES = ("title", "header", "name", "value", "note", "unknown", "empty", "cursor")
_HEADER_LINES = 1
_MAX_NAME_CELLS = 20
_VALUE_CELLS = 5  # "100 %"
_BETWEEN = 1
_CELL_STEP = 2  # a cell and the space after it
_LOWERED = {BLOCKS[-1]: BLOCKS[-2]}  # full cells would grow together with those of the next node


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One node.

    Attributes:
        name: the node's name.
        label_note: a remark such as "▲ slow"; empty for none.
        values: one share (0–1) a GPU; None where it is not known.
        mean: their mean, or None.
    """

    name: str
    label_note: str
    values: tuple[float | None, ...]
    mean: float | None


class GpuMatrix(ScrollView, can_focus=True):
    """A heat map of nodes × GPUs: read by the cells' heights, and faster by their colours.

    Scrolls when there are more nodes than lines, its header staying. The cursor picks a node; enter or a
    click posts `NodeSelected`. Only lines that changed are painted again.
    """

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"gpu-matrix--{name}" for name in _STYLES),
        *heat_classes("gpu-matrix--heat"),
    }

    DEFAULT_CSS = """
    GpuMatrix {
        width: 1fr;
        height: 1fr;
        min-height: 2;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & > .gpu-matrix--title { text-style: bold; }
        & > .gpu-matrix--header { color: $text-muted; }
        & > .gpu-matrix--note { color: $text-warning; }
        & > .gpu-matrix--unknown { color: $text-muted; }
        & > .gpu-matrix--empty { color: $text-muted; text-style: italic; }
        & > .gpu-matrix--cursor { text-style: bold underline; }
    }
    """ + heat_css("GpuMatrix", "gpu-matrix--heat")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Next node", show=False, id="matrix.down"),
        Binding("up,k", "move(-1)", "Previous node", show=False, id="matrix.up"),
        Binding("home,g", "move_to_end(-1)", "First node", show=False, id="matrix.first"),
        Binding("end,G", "move_to_end(1)", "Last node", show=False, id="matrix.last"),
        Binding("enter", "select", "Select node", show=False, id="matrix.select"),
    ]

    matrix_title: reactive[str] = reactive("")
    """What the cells show."""

    class NodeSelected(Message):
        """The reader picked a node."""

        def __init__(self, gpu_matrix: GpuMatrix, name: str) -> None:
            self.gpu_matrix = gpu_matrix
            self.name = name
            super().__init__()

        @property
        def control(self) -> GpuMatrix:
            """The matrix it happened in."""
            return self.gpu_matrix

    def __init__(
        self,
        title: str = "",
        *,
        unit: Callable[[float | None], str] = percent,
        empty_text: str = "no GPU data yet",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Make an empty matrix.

        Args:
            title: what the cells show.
            unit: turns a node's mean into text of at most five cells.
            empty_text: what to say while there is no node.
            name: the widget's name.
            id: its id.
            classes: its style classes.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._unit = unit
        self.empty_text = empty_text
        self._rows: tuple[MatrixRow, ...] = ()
        self._columns = (0, 0, 0)
        self._cursor: str | None = None
        self._styles: dict[str, Style] = {}
        self.set_reactive(GpuMatrix.matrix_title, title)

    @property
    def selected(self) -> str | None:
        """The name of the node under the cursor."""
        return self._cursor

    def set_data(self, rows: Sequence[MatrixRow]) -> None:
        """Show these nodes, in this order; the cursor stays on its node."""
        given = tuple(rows)
        before, self._rows = self._rows, given
        columns = (
            max((cell_len(self._row_name(row)) for row in given), default=0),
            max((cell_len(inert(row.label_note)) for row in given), default=0),
            max((len(row.values) for row in given), default=0),
        )
        if not any(row.name == self._cursor for row in given):
            self._cursor = given[0].name if given else None
        if len(before) != len(given) or columns != self._columns:
            self._columns = columns
            self._fit()
            self.refresh()
            return
        for index, (old, new) in enumerate(zip(before, given, strict=True)):
            if old is not new and old != new:
                self._refresh_row(index)

    def _fit(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows) + _HEADER_LINES)

    def _refresh_row(self, index: int) -> None:
        y = index + _HEADER_LINES - self.scroll_offset.y
        if 0 < y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    # --- the cursor ---------------------------------------------------------------------------

    def _cursor_index(self) -> int:
        return next((index for index, row in enumerate(self._rows) if row.name == self._cursor), 0)

    def _put_cursor(self, index: int) -> None:
        if not self._rows:
            return
        index = min(max(index, 0), len(self._rows) - 1)
        before = self._cursor_index()
        self._cursor = self._rows[index].name
        self._refresh_row(before)
        self._refresh_row(index)
        shown = max(1, self.size.height - _HEADER_LINES)
        if index < self.scroll_offset.y:
            self.scroll_to(y=index, animate=False)
        elif index >= self.scroll_offset.y + shown:
            self.scroll_to(y=index - shown + 1, animate=False)

    def action_move(self, rows: int) -> None:
        """Move the cursor by so many nodes."""
        self._put_cursor(self._cursor_index() + rows)

    def action_move_to_end(self, direction: int) -> None:
        """Move the cursor to the first (negative) or the last node."""
        self._put_cursor(0 if direction < 0 else len(self._rows) - 1)

    def action_select(self) -> None:
        """Tell which node is under the cursor."""
        if self._cursor is not None:
            self.post_message(self.NodeSelected(self, self._cursor))

    def on_click(self, event: events.Click) -> None:
        """Pick the node that was clicked on."""
        index = event.y - _HEADER_LINES + self.scroll_offset.y
        if event.y >= _HEADER_LINES and index < len(self._rows):
            self._put_cursor(index)
            self.action_select()

    def on_focus(self) -> None:
        """Show the cursor."""
        self._refresh_row(self._cursor_index())

    def on_blur(self) -> None:
        """Hide the cursor."""
        self._refresh_row(self._cursor_index())

    # --- painting -----------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Colours may have changed with the theme."""
        super().notify_style_update()
        self._styles.clear()

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = self.get_component_rich_style(f"gpu-matrix--{name}")
        return style

    def _row_name(self, row: MatrixRow) -> str:
        return clip(inert(row.name), _MAX_NAME_CELLS)

    def _left_cells(self) -> int:
        """Cells before the heat cells; the name gives way when there is little room."""
        name, note, gpus = self._columns
        wanted = name + _BETWEEN + _VALUE_CELLS + _BETWEEN + (note + _BETWEEN if note else 0) + _BETWEEN
        return max(0, min(wanted, self.size.width - gpus * _CELL_STEP))

    def render_line(self, y: int) -> Strip:
        """The header, a node, or nothing."""
        width = self.size.width
        if y < _HEADER_LINES:
            segments = self._header()
        else:
            index = y - _HEADER_LINES + self.scroll_offset.y
            if index < len(self._rows):
                segments = self._row(self._rows[index])
            elif not self._rows and y == max(_HEADER_LINES, self.size.height // 2):
                text = clip(inert(self.empty_text), width)
                left = (width - cell_len(text)) // 2
                segments = [Segment(" " * left + text, self._style("empty"))]
            else:
                segments = []
        strip = Strip([segment for segment in segments if segment.text])
        return strip.adjust_cell_length(width, self._style("name"))

    def _header(self) -> list[Segment]:
        left = self._left_cells()
        title = inert(self.matrix_title)
        gpus = self._columns[2]
        if not gpus:
            return [Segment(clip(title, self.size.width), self._style("title"))]
        shown = clip(title, max(0, left - _BETWEEN))
        # Two-digit GPU numbers would touch: from ten on only the last digit is shown.
        numbers = "".join(f"{gpu % 10} " for gpu in range(gpus))
        return [
            Segment(shown + " " * (left - cell_len(shown)), self._style("title")),
            Segment(numbers, self._style("header")),
        ]

    def _row(self, row: MatrixRow) -> list[Segment]:
        left = self._left_cells()
        note = inert(row.label_note)
        is_cursor = self.has_focus and row.name == self._cursor
        name_cells = min(self._columns[0], max(0, left - _VALUE_CELLS - 2 * _BETWEEN))
        name = clip(self._row_name(row), name_cells)
        name_style = self._style("cursor") if is_cursor else self._style("name")
        value = clip(self._unit(row.mean), _VALUE_CELLS).rjust(_VALUE_CELLS)
        rest = left - name_cells - _BETWEEN - _VALUE_CELLS
        room = max(0, rest - 2 * _BETWEEN)
        if cell_len(note) > room:
            note = clip(note.split(" ")[0], room)  # the sign alone says enough
        if rest >= 0:
            label = [
                Segment(name, name_style),
                Segment(" " * (name_cells - cell_len(name) + _BETWEEN), self._style("name")),
                Segment(value, self._style("value")),
                Segment((" " + note if note else "").ljust(rest), self._style("note")),
            ]
        else:
            label = [Segment(clip(value, left).rjust(left), self._style("value"))]
        return [*label, *self._cells(row.values)]

    def _cells(self, values: Sequence[float | None]) -> list[Segment]:
        segments: list[Segment] = []
        for value in values:
            glyph = _LOWERED.get(block(value), block(value))
            if glyph == GAP or value is None:
                name = "unknown"
            else:
                level = int(min(max(value, 0.0), 1.0) * HEAT_LEVELS)
                name = f"heat-{min(level, HEAT_LEVELS - 1)}"
            segments.append(Segment(glyph + " ", self._style(name)))
        return segments
