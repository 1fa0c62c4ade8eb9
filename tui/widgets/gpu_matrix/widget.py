"""The matrix widget: scrolls, and has a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.text.sanitize import clip
from tui.widgets.cursor_rows import CursorRows
from tui.widgets.gpu_matrix.renderer import HEADER_LINES, Frame, Glyph, MatrixRenderer, MatrixRow
from tui.widgets.tones import HEAT

_STYLES = ("title", "header", "name", "value", "note", "unknown", "empty", "cursor")

_NOT_LAID_OUT = 10_000
"""Height assumed before the first layout, large enough for one line per node."""


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
        self._renderer = MatrixRenderer()
        self._frame = Frame()
        self._rows: tuple[MatrixRow, ...] = ()
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
        self._rows = tuple(rows)
        self._frame = frame if frame is not None else self._frame
        self._cursor = self._index_of(name) or 0
        self.fit()
        self.refresh(layout=len(self._rows) != count)

    def _index_of(self, name: str | None) -> int | None:
        return next((index for index, row in enumerate(self._rows) if row.name == name), None)

    def fit(self) -> None:
        """Lay out again after the space around the matrix changed without a resize of the matrix."""
        self._renderer.lay_out(self._rows, self._frame, self.size.width, self._height_at_most())
        self.virtual_size = Size(self.size.width, self._renderer.lines)
        self.refresh()

    def _height_at_most(self) -> int:
        """Return the available height: the parent's if the matrix has automatic height.

        Its own height would reflect the previous rows: after growing from a few nodes to many, the matrix
        would stay at small cells without names.
        """
        around = self.parent.size.height if isinstance(self.parent, Widget) else 0
        if self.styles.height is not None and self.styles.height.is_auto and around:
            return around
        return self.size.height or _NOT_LAID_OUT

    def _on_resize(self, event: events.Resize) -> None:
        self.fit()

    # The cursor

    def _line_of(self, index: int) -> int:
        return index // self._renderer.across

    @property
    def footer_lines(self) -> int:
        return int(self._renderer.has_footer)

    def _cursor_moved(self) -> None:
        self.refresh()

    def point_at(self, name: str | None) -> None:
        """Put the cursor on a chosen node and show it without focus too; None chooses no node."""
        index = self._index_of(name)
        self.blurred_cursor = index is not None
        if index is not None:
            self._move(index)

    def action_cursor_by(self, lines: int) -> None:
        super().action_cursor_by(lines * self._renderer.across)

    def action_move_across(self, nodes: int) -> None:
        self._move(self._cursor + nodes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave left and right to the screen while each line holds one node."""
        return action != "move_across" or self._renderer.across > 1

    def action_select(self) -> None:
        if self.selected is not None:
            self.post_message(self.NodeSelected(self.selected))

    def _row_at(self, x: int, y: int) -> int | None:
        line = y - HEADER_LINES + self.scroll_offset.y
        index = self._renderer.node_at(line, x)
        is_node = HEADER_LINES <= y < self.size.height - self.footer_lines
        return index if is_node and index is not None and index < len(self._rows) else None

    def _row_clicked(self, *, again: bool) -> None:
        self.action_select()

    # Painting

    def _style(self, name: str) -> Style:
        """Return the style of a run; several names separated by spaces are combined."""
        style = Style.null()
        for part in name.split(" "):
            style += self.get_component_rich_style(f"gpu-matrix--{part}", partial=part == "cursor")
        return style

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        renderer = self._renderer
        line = y - HEADER_LINES + self.scroll_offset.y
        runs: list[Glyph] = []
        if y < HEADER_LINES:
            runs = renderer.header()
        elif not self._rows and y == max(HEADER_LINES, height // 2):
            text = clip("no GPU data", width)
            runs = [(" " * ((width - len(text)) // 2) + text, "empty")]
        elif renderer.has_footer and y == height - 1 and height > HEADER_LINES + 1:
            marked = next((index for index, row in enumerate(self._rows) if row.sign), self._cursor)
            runs = renderer.footer(self._cursor if self.has_focus else marked)
        elif line * renderer.across < len(self._rows):
            runs = renderer.line(line, self._cursor if self.has_focus or self.blurred_cursor else None)
        strip = Strip([Segment(text, self._style(name)) for text, name in runs if text])
        return strip.adjust_cell_length(width, self._style("name"))
