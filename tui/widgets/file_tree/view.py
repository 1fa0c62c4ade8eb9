"""A tree of files with directory totals, for a hundred thousand of them.

Textual's Tree holds a widget-like node per file and is filled at once; this one draws the lines on
screen out of `tui.analysis.file_tree`, and builds, filters and sorts in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui.analysis.file_tree.rows import BY_NAME, Order, SortKey, VisibleRows
from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree
from tui.text.sanitize import cell_width, clip, sanitize
from tui.widgets.background import run_in_background
from tui.widgets.cursor_rows import HEADING_LINES, CursorRows
from tui.widgets.file_tree.model import Shown, ViewRequest, arrange, nodes_at
from tui.widgets.file_tree.renderer import GAP, TreeLayout, lay_out, row_spans

AT_ONCE_S = 0.008
"""How long a change is waited for, so that what is small is done before the next key."""
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="files")


class FileTreeView(CursorRows):
    """A tree of ``FileEntry`` records that keeps cursor and open directories across updates."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "FileTreeView > .file-tree--empty { color: $text-muted; }"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"file-tree--empty"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "go_in", "open", show=False),
        Binding("left,h", "go_out", "close", show=False),
    ]

    class Highlighted(Message):
        def can_replace(self, message: Message) -> bool:
            return isinstance(message, FileTreeView.Highlighted)

    class FileChosen(Message):
        """A file was chosen by Enter or a click on the row under the cursor."""

    class Arranged(Message):
        """There are newer files, or another filter."""

    class MarksChanged(Message):
        """The set of marked nodes changed."""

    def __init__(
        self,
        *,
        order: Order = BY_NAME,
        now_s: Callable[[], float] = time.time,
        empty_text: str = "no files",
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.empty_text = empty_text
        self._now_s = now_s
        self._columns: TreeLayout = lay_out(80)
        self._request = ViewRequest(order=order)
        self._arranged: tuple[ViewRequest, Shown | None] = (ViewRequest(), None)  # owned by the thread
        self._shown: Shown | None = None
        self._newest: Future[None] | None = None
        self._busy_with = ""
        self.cursor_node: int | None = None
        """Rows move; the cursor stays on its node. Read-only."""
        self._last_path: str | None = None  # restores the cursor if files return after the tree was empty
        self._marks: set[int] = set()

    # Current state

    @property
    def file_tree(self) -> FileTree | None:
        return None if self._shown is None else self._shown.tree

    @property
    def rows(self) -> VisibleRows | None:
        return None if self._shown is None else self._shown.rows

    @property
    def order(self) -> Order:
        """The sort order on display, or the requested one while sorting."""
        return self._request.order

    @property
    def pattern(self) -> str:
        """The filter pattern on display, or the requested one while filtering."""
        return self._request.pattern

    @property
    def row_count(self) -> int:
        return len(self._shown_nodes)

    @property
    def is_busy(self) -> bool:
        return bool(self._busy_with)

    @property
    def cursor_path(self) -> str | None:
        """The path under the cursor, as the server sent it."""
        node, tree = self.cursor_node, self.file_tree
        return tree.path(node) if node is not None and tree is not None else None

    @property
    def marked(self) -> frozenset[int]:
        return frozenset(self._marks)

    @property
    def _shown_nodes(self) -> Sequence[int]:
        return self.rows.nodes if self.rows is not None else ()

    def set_entries(self, entries: Sequence[FileEntry] | None) -> None:
        """Show the files; None clears the tree. The sequence must not change afterwards."""
        self._ask(replace(self._request, entries=entries))

    def set_pattern(self, pattern: str) -> None:
        self._ask(replace(self._request, pattern=pattern))

    def set_order(self, order: Order) -> None:
        self._ask(replace(self._request, order=order))

    # Work in the thread

    def on_mount(self) -> None:
        self._ask(self._request)

    def _ask(self, request: ViewRequest) -> None:
        self._request = request
        if self.is_attached:
            self._do(self._arrange, "arranging…")

    def _arrange(self) -> None:
        """Arrange the newest request, unless an earlier call has done so. Called in the thread."""
        request = self._request
        if self._arranged[0] is not request:
            self._arranged = request, arrange(request, self._arranged[1])

    def _reopen(self, reopened: Callable[[VisibleRows], VisibleRows]) -> None:
        tree = self.file_tree

        def work() -> None:
            request, shown = self._arranged
            if shown is not None and shown.tree is tree:
                self._arranged = request, shown.with_rows(reopened(shown.rows))

        self._do(work, "opening…")

    def _do(self, work: Callable[[], None], what: str) -> None:
        """Do the work in the thread and show the result: at once if it is short, else when it is done."""
        self._newest = future = _THREAD.submit(work)
        wait([future], AT_ONCE_S)
        if future.done():
            self._adopt(future)
        else:
            self._busy_with = what
            self.refresh()
            run_in_background(self, partial(self._adopt_when_done, future), "tree of files", group="tree")

    async def _adopt_when_done(self, future: Future[None]) -> None:
        await asyncio.wait([asyncio.wrap_future(future)])
        self._adopt(future)

    def _adopt(self, future: Future[None]) -> None:
        if future is self._newest:
            self._busy_with = ""
        self.refresh()
        future.result()
        before, self._shown = self._shown, self._arranged[1]
        if self._shown is not before:
            self._show_rows(before)

    def _show_rows(self, before: Shown | None) -> None:
        """Keep the marks, the cursor and its line on the screen; in a newer tree they are found by path."""
        shown, node, line = self._shown, self.cursor_node, self._cursor - self.scroll_offset.y
        rows, tree = (None, None) if before is None else (before.rows, before.tree)
        if tree is not self.file_tree:
            if tree is not None and node is not None:
                self._last_path = tree.path(node)
            node_at = shown.node_at if shown is not None else {}
            self._marks = nodes_at(node_at, map(tree.path, self._marks) if tree is not None else ())
            node = node_at.get(self._last_path or "")
        is_other = rows is None or self.rows is None or rows.matches is not self.rows.matches
        self._cursor = self._row_for(node, find_match=is_other)
        self.cursor_node = self._shown_nodes[self._cursor] if self._shown_nodes else None
        self.virtual_size = Size(0, self.row_count + HEADING_LINES)
        self.scroll_to(y=max(0, self._cursor - line), animate=False, force=True)
        self._scroll_to_cursor()
        if is_other or tree is not self.file_tree:
            self.post_message(self.Arranged())
        self.post_message(self.Highlighted())

    def _row_for(self, node: int | None, *, find_match: bool) -> int:
        """Return the row of a node, or of the directory that hides it, or of the first match."""
        rows = self.rows
        if rows is None or not rows.nodes:
            return 0
        path = () if node is None else (node, *rows.tree.ancestors(node))
        row = next((row for each in path if (row := rows.row_of(each)) is not None), 0)
        if not find_match or rows.matches is None or rows.matches.hits[rows.nodes[row]]:
            return row
        hits = rows.matches.hits
        return next((number for number, other in enumerate(rows.nodes) if hits[other]), row)

    # Drawing

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if width != self._columns.width:
            self._columns = lay_out(width)
        if y == 0:
            return self._heading(width)
        index = y - HEADING_LINES + self.scroll_offset.y
        rows = self.rows
        if rows is None or not rows.nodes:
            return self._emptiness(y, width)
        if index >= len(rows.nodes):
            return Strip.blank(width, self.rich_style)
        node = rows.nodes[index]
        component = self._component_of(index)
        base = self._component(component) if component else self.rich_style
        spans = row_spans(rows, node, self._columns, now_s=self._now_s(), marked=node in self._marks)
        segments = [Segment(text, base + self._tones.get(tone, Style.null())) for text, tone in spans]
        return Strip(segments).adjust_cell_length(width, base)

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
        style = self._component("heading")
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def _emptiness(self, y: int, width: int) -> Strip:
        message = self._busy_with or (self.empty_text if self._shown is not None else "")
        if y != max(1, self.size.height // 2) or not message:
            return Strip.blank(width, self.rich_style)
        message = clip(sanitize(message), width)
        left = (width - cell_width(message)) // 2
        style = self.rich_style + self.get_component_rich_style("file-tree--empty", partial=True)
        return Strip([Segment(" " * left + message, style)]).adjust_cell_length(width, style)

    # Navigation

    def _cursor_moved(self) -> None:
        self.cursor_node = self._shown_nodes[self._cursor]
        self.post_message(self.Highlighted())

    def action_go_in(self) -> None:
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None or not rows.tree.is_directory(node):
            return
        if rows.is_open(node):
            if self._cursor + 1 < len(rows.nodes) and rows.tree.parents[rows.nodes[self._cursor + 1]] == node:
                self._move(self._cursor + 1)
        else:
            self.toggle()

    def action_go_out(self) -> None:
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
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None:
            return
        if rows.tree.is_directory(node):
            self.toggle()
        else:
            self.post_message(self.FileChosen())

    def toggle(self) -> None:
        node = self.cursor_node
        if node is not None:
            self._reopen(lambda rows: rows.toggled(node))

    def open_below(self) -> None:
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None:
            return
        top = node if rows.tree.is_directory(node) else rows.tree.parents[node]
        if top != ROOT:
            self._reopen(lambda rows: rows.toggled_below(top))

    def toggle_mark(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        self._marks ^= {node}
        self.refresh()
        self.post_message(self.MarksChanged())
        self._move(self._cursor + 1)

    def clear_marks(self) -> bool:
        had = bool(self._marks)
        self._marks.clear()
        if had:
            self.refresh()
            self.post_message(self.MarksChanged())
        return had

    # Mouse

    def _heading_clicked(self, x: int) -> None:
        key = self._columns.key_at(x)
        if key is not None:
            self.sort_by(key)

    def _row_clicked(self, *, again: bool) -> None:
        node, tree = self.cursor_node, self.file_tree
        if node is not None and tree is not None and (again or tree.is_directory(node)):
            self.choose()

    def sort_by(self, key: SortKey) -> None:
        order = self.order
        descending = key in (SortKey.SIZE, SortKey.TIME)
        self.set_order(order.reversed() if order.key is key else Order(key, descending))
