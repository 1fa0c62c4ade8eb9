"""The matrix widget: scrolls, has a cursor, and repaints only lines that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from tui.text.sanitize import clip, sanitize
from tui.widgets.gpu_matrix.renderer import HEADER_LINES, Frame, Glyph, MatrixRenderer, MatrixRow
from tui.widgets.tones import HEAT

_STYLES = ("title", "header", "name", "value", "note", "unknown", "empty", "cursor")

_NOT_LAID_OUT = 10_000
"""Height assumed before the first layout, large enough for one line per node."""


class GpuMatrix(ScrollView, can_focus=True):
    """A heat map of nodes × GPUs that shows values by cell height and color.

    Nodes get a line each while they fit, then share lines, then show two GPUs per cell; 64 nodes of 8
    GPUs fit into 44 × 10 cells. Larger matrices scroll, with a fixed header and a footer for the node
    under the cursor. Enter or a click posts `NodeSelected`. Only lines that changed are repainted.
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
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & > .gpu-matrix--title { text-style: bold; }
        & > .gpu-matrix--header { color: $text-muted; }
        & > .gpu-matrix--note { color: $text-warning; }
        & > .gpu-matrix--unknown { color: $text-muted; }
        & > .gpu-matrix--empty { color: $text-muted; text-style: italic; }
        & > .gpu-matrix--cursor { text-style: bold underline; }
    }
    """ + HEAT.css("GpuMatrix", "gpu-matrix--heat")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Next node", show=False, id="matrix.down"),
        Binding("up,k", "move(-1)", "Previous node", show=False, id="matrix.up"),
        Binding("right,l", "move_across(1)", "Node to the right", show=False, id="matrix.right"),
        Binding("left,h", "move_across(-1)", "Node to the left", show=False, id="matrix.left"),
        Binding("home,g", "move_to_end(-1)", "First node", show=False, id="matrix.first"),
        Binding("end,G", "move_to_end(1)", "Last node", show=False, id="matrix.last"),
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
        self._cursor: str | None = None
        self._is_chosen = False

    @property
    def selected(self) -> str | None:
        return self._cursor

    def set_data(self, rows: Sequence[MatrixRow], frame: Frame | None = None) -> None:
        new_rows = tuple(rows)
        before, self._rows = self._rows, new_rows
        self._frame = frame if frame is not None else self._frame
        if not any(row.name == self._cursor for row in new_rows):
            self._cursor = new_rows[0].name if new_rows else None
        if self._lay_out():
            self.refresh(layout=len(before) != len(new_rows))
            return
        lines = {
            self._renderer.shape.line_of(index)
            for index, (old, new) in enumerate(zip(before, new_rows, strict=True))
            if old is not new and old != new
        }
        for line in sorted(lines):
            self._refresh_line(line)
        if lines and self._renderer.shape.density != "lines":
            self.refresh(Region(0, 0, self.size.width, 1))
            self._refresh_footer()

    def _lay_out(self) -> bool:
        moved = self._renderer.lay_out(self._rows, self._frame, (self.size.width, self._height_at_most()))
        if moved:
            self.virtual_size = Size(self.size.width, self._renderer.lines)
        return moved

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

    def fit(self) -> None:
        """Lay out again after the space around the matrix changed without a resize of the matrix."""
        if self._lay_out():
            self.refresh()

    def _refresh_line(self, line: int) -> None:
        y = line + HEADER_LINES - self.scroll_offset.y
        if 0 < y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _refresh_footer(self) -> None:
        self.refresh(Region(0, self.size.height - 1, self.size.width, 1))

    def _refresh_row(self, index: int) -> None:
        self._refresh_line(self._renderer.shape.line_of(index))

    # The cursor

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
        if self._renderer.has_footer:
            self._refresh_footer()
        line = self._renderer.shape.line_of(index)
        shown = max(1, self.size.height - HEADER_LINES - self._renderer.has_footer)
        if line < self.scroll_offset.y:
            self.scroll_to(y=line, animate=False)
        elif line >= self.scroll_offset.y + shown:
            self.scroll_to(y=line - shown + 1, animate=False)

    def point_at(self, name: str | None) -> None:
        """Put the cursor on a chosen node and show it without focus too; None chooses no node."""
        index = next((index for index, row in enumerate(self._rows) if row.name == name), None)
        self._is_chosen = index is not None
        self._put_cursor(self._cursor_index() if index is None else index)

    def action_move(self, lines: int) -> None:
        index = self._cursor_index() + lines * self._renderer.shape.across
        if 0 <= index < len(self._rows) or self._renderer.shape.across == 1:
            self._put_cursor(index)

    def action_move_across(self, nodes: int) -> None:
        self._put_cursor(self._cursor_index() + nodes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave left and right to the screen while each line holds one node."""
        return action != "move_across" or self._renderer.shape.across > 1

    def action_move_to_end(self, direction: int) -> None:
        self._put_cursor(0 if direction < 0 else len(self._rows) - 1)

    def action_select(self) -> None:
        if self._cursor is not None:
            self.post_message(self.NodeSelected(self._cursor))

    def on_click(self, event: events.Click) -> None:
        if event.y < HEADER_LINES or (self._renderer.has_footer and event.y == self.size.height - 1):
            return
        line = event.y - HEADER_LINES + self.scroll_offset.y
        index = self._renderer.shape.node_at(line, event.x)
        if index is not None and index < len(self._rows):
            self._put_cursor(index)
            self.action_select()

    def on_focus(self) -> None:
        self._refresh_row(self._cursor_index())

    def on_blur(self) -> None:
        self._refresh_row(self._cursor_index())

    # Painting

    def _style(self, name: str) -> Style:
        """Return the style of a run; several names separated by spaces are combined."""
        style = Style.null()
        for part in name.split(" "):
            style += self.get_component_rich_style(f"gpu-matrix--{part}", partial=part == "cursor")
        return style

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        painter = self._renderer
        cursor = self._cursor if self.has_focus or self._is_chosen else None
        runs: list[Glyph] = []
        if not self._rows:
            runs = self._nothing(y)
        elif y < HEADER_LINES:
            runs = painter.header()
        elif painter.has_footer and y == height - 1 and height > HEADER_LINES + 1:
            marked = next((row.name for row in self._rows if row.sign), None)
            runs = painter.footer(self._cursor if self.has_focus or marked is None else marked)
        else:
            line = y - HEADER_LINES + self.scroll_offset.y
            if line < painter.shape.lines:
                runs = painter.line(line, cursor)
        strip = Strip([Segment(text, self._style(name)) for text, name in runs if text])
        return strip.adjust_cell_length(width, self._style("name"))

    def _nothing(self, y: int) -> list[Glyph]:
        width = self.size.width
        if y < HEADER_LINES:
            return [(clip(sanitize(self._frame.title), width), "title")]
        if y != max(HEADER_LINES, self.size.height // 2):
            return []
        text = clip("no GPU data", width)
        return [(" " * ((width - cell_len(text)) // 2) + text, "empty")]
