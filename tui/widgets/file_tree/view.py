"""A tree of files with directory totals, for a hundred thousand of them.

Textual's Tree holds a widget-like node per file and is filled at once; this one draws the lines on
screen out of `tui.analysis.file_tree`, and builds, filters and sorts in slices of a few milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip

from tui.analysis.file_tree import BY_NAME, ROOT, Order, SortKey, Steps, VisibleRows
from tui.text.sanitize import cell_width, clip, sanitize
from tui.widgets.file_tree.arranged import (
    HEADING_LINES,
    Arranged,
    BaseFileTreeView,
    FileChosen,
    Highlighted,
    MarksChanged,
    open_below_steps,
)
from tui.widgets.file_tree.renderer import GAP, TreeLayout, lay_out, row_spans
from tui.widgets.tones import tone_styles


class FileTreeView(BaseFileTreeView, can_focus=True):
    """A tree of ``FileEntry`` records that keeps cursor and open directories across updates."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    FileTreeView {
        background: $background;
        color: $foreground;
        scrollbar-size: 0 1;
        overflow-x: hidden;
        & > .file-tree--heading { color: $text-muted; text-style: bold; }
        & > .file-tree--cursor { background: $block-cursor-background; text-style: bold; }
        & > .file-tree--cursor-blurred { background: $block-cursor-blurred-background; }
        & > .file-tree--hover { background: $boost; }
        & > .file-tree--empty { color: $text-muted; }
        &:ansi > .file-tree--cursor { text-style: reverse; }
        &:ansi > .file-tree--cursor-blurred { text-style: underline; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"file-tree--{name}" for name in ("heading", "cursor", "cursor-blurred", "hover", "empty")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "cursor_by(1)", "down", show=False),
        Binding("up,k", "cursor_by(-1)", "up", show=False),
        Binding("pagedown,ctrl+d,ctrl+f", "cursor_by_page(1)", "page down", show=False),
        Binding("pageup,ctrl+u,ctrl+b", "cursor_by_page(-1)", "page up", show=False),
        Binding("home,g", "cursor_to_end(False)", "top", show=False),
        Binding("end,G", "cursor_to_end(True)", "bottom", show=False),
        Binding("right,l", "go_in", "open", show=False),
        Binding("left,h", "go_out", "close", show=False),
    ]

    Highlighted = Highlighted
    FileChosen = FileChosen
    Arranged = Arranged
    MarksChanged = MarksChanged

    def __init__(
        self,
        *,
        order: Order = BY_NAME,
        now_s: Callable[[], float] = time.time,
        empty_text: str = "no files",
        id: str | None = None,
    ) -> None:
        """Create an empty tree.

        ``now_s`` is the wall clock in epoch seconds, for ages; ``empty_text`` is shown if there are no
        rows.
        """
        super().__init__(order=order, id=id)
        self.empty_text = empty_text
        self._now_s = now_s
        self._hover: int | None = None
        self._columns: TreeLayout = lay_out(80)
        self._tones: Mapping[str, Style] = {}

    # Drawing

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones = {}

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if width != self._columns.width:
            self._columns = lay_out(width)
        if not self._tones:
            self._tones = tone_styles(self.app)
        if y == 0:
            return self._heading(width)
        index = y - HEADING_LINES + self.scroll_offset.y
        rows = self.rows
        if rows is None or not rows.nodes:
            return self._emptiness(y, width)
        if index >= len(rows.nodes):
            return Strip.blank(width, self.rich_style)
        node = rows.nodes[index]
        base = self._base(index)
        spans = row_spans(rows, node, self._columns, now_s=self._now_s(), marked=node in self._marks)
        segments = [Segment(text, base + self._tones.get(tone, Style.null())) for text, tone in spans]
        return Strip(segments).adjust_cell_length(width, base)

    def _base(self, index: int) -> Style:
        look = ""
        if index == self._cursor:
            look = "file-tree--cursor" if self.has_focus else "file-tree--cursor-blurred"
        elif index == self._hover:
            look = "file-tree--hover"
        return (
            self.rich_style + self.get_component_rich_style(look, partial=True) if look else self.rich_style
        )

    def _heading(self, width: int) -> Strip:
        layout, order = self._columns, self.order
        sign = "▾" if order.descending else "▴"
        name = "name" + (sign if order.key is SortKey.NAME else "")
        if self._busy_with and self._shown_nodes:
            name += f"  · {self._busy_with}"
        name = clip(name, layout.name_cells)
        text = " " + name + " " * (layout.name_cells - cell_width(name))
        signed = order.key is SortKey.NAME
        for column in layout.columns:
            title = column.title
            if not signed and column.sorts_by is order.key:
                title, signed = title + sign, True
            fitted = (
                title.ljust(column.width) if column.id in ("share", "type") else title.rjust(column.width)
            )
            text += " " * GAP + fitted
        style = self.rich_style + self.get_component_rich_style("file-tree--heading", partial=True)
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def _emptiness(self, y: int, width: int) -> Strip:
        has_answer = self._applied_request is not None and self._applied_request.entries is not None
        words = self._busy_with or (self.empty_text if has_answer else "")
        if y != max(1, self.size.height // 2) or not words:
            return Strip.blank(width, self.rich_style)
        words = clip(sanitize(words), width)
        left = (width - cell_width(words)) // 2
        style = self.rich_style + self.get_component_rich_style("file-tree--empty", partial=True)
        return Strip([Segment(" " * left + words, style)]).adjust_cell_length(width, style)

    # Navigation

    def action_cursor_by(self, lines: int) -> None:
        self._move(self._cursor + lines)

    def action_cursor_by_page(self, pages: int) -> None:
        self._move(self._cursor + pages * max(1, self.size.height - HEADING_LINES - 1))

    def action_cursor_to_end(self, last: bool) -> None:
        self._move(len(self._shown_nodes) - 1 if last else 0)

    def action_go_in(self) -> None:
        """Open the directory, or move to its first entry if it is open."""
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None or not rows.tree.is_directory(node):
            return
        if rows.is_open(node):
            if self._cursor + 1 < len(rows.nodes) and rows.tree.parents[rows.nodes[self._cursor + 1]] == node:
                self._move(self._cursor + 1)
        else:
            self.toggle()

    def action_go_out(self) -> None:
        """Close the directory, or move to its parent if it is closed."""
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None:
            return
        if rows.is_open(node):
            self.toggle()
        elif (parent := rows.tree.parents[node]) != ROOT:
            row = rows.row_of(parent)
            if row is not None:
                self._move(row)

    # Actions on the current node

    def choose(self) -> None:
        """Toggle the directory under the cursor, or post ``FileChosen`` for a file."""
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None:
            return
        if rows.tree.is_directory(node):
            self.toggle()
        else:
            self.post_message(FileChosen(self))

    def toggle(self) -> None:
        rows, node = self.rows, self.cursor_node
        if rows is not None and node is not None:
            self._do(lambda: self._toggle_steps(rows, node))

    def _toggle_steps(self, rows: VisibleRows, node: int) -> Steps[object] | None:
        row = rows.row_of(node)
        if row is None or rows is not self.rows:
            return None  # superseded by a filter or newer files
        if not rows.is_open(node):
            return rows.open_steps(row)
        return _at_once(lambda: rows.close(row))

    def open_below(self) -> None:
        """Open everything below the directory under the cursor, or close it if everything is open."""
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None:
            return
        top = node if rows.tree.is_directory(node) else rows.tree.parents[node]
        if top != ROOT:
            self._do(lambda: open_below_steps(rows, top) if rows is self.rows else None)

    def toggle_mark(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        self._marks ^= {node}
        self.refresh()
        self.post_message(MarksChanged(self))
        self._move(self._cursor + 1)

    def clear_marks(self) -> bool:
        had = bool(self._marks)
        self._marks.clear()
        if had:
            self.refresh()
            self.post_message(MarksChanged(self))
        return had

    # Mouse

    def _row_at(self, y: int) -> int | None:
        index = y - HEADING_LINES + self.scroll_offset.y
        return index if y >= HEADING_LINES and index < len(self._shown_nodes) else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        index = self._row_at(event.y)
        if index != self._hover:
            self._hover = index
            self.refresh()

    def on_leave(self) -> None:
        if self._hover is not None:
            self._hover = None
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Sort by a heading, toggle a directory, or select a file; a click on the selected file opens it."""
        if event.y == 0:
            key = self._columns.key_at(event.x)
            if key is not None:
                self.sort_by(key)
            return
        index = self._row_at(event.y)
        if index is None:
            return
        again = index == self._cursor
        self._move(index)
        node, tree = self.cursor_node, self.file_tree
        if node is not None and tree is not None and (again or tree.is_directory(node)):
            self.choose()

    def sort_by(self, key: SortKey) -> None:
        """Sort by `key`; the same key again reverses the order."""
        order = self.order
        descending = key in (SortKey.SIZE, SortKey.TIME)
        self.set_order(order.reversed() if order.key is key else Order(key, descending))


def _at_once(act: Callable[[], object]) -> Steps[object]:
    act()
    return None
    yield 1.0
