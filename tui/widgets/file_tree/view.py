"""A tree of files with directory totals, for a hundred thousand of them.

Textual's Tree holds a widget-like node per file and is filled at once; this one draws the lines on
screen out of `tui.analysis.file_tree`, and builds, filters and sorts in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import ClassVar, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui.analysis.file_tree.rows import BY_NAME, Order, SortKey, VisibleRows, nodes_at
from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree
from tui.text.sanitize import cell_width, clip, sanitize
from tui.widgets.background import run_in_background
from tui.widgets.cursor_rows import HEADING_LINES, CursorRows
from tui.widgets.file_tree.model import Shown, ViewRequest, arrange
from tui.widgets.file_tree.renderer import GAP, TreeLayout, lay_out, row_spans

Result = TypeVar("Result")
Work = Callable[[], object]
"""Work on the rows, to be done in the thread."""
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
        """The rows changed: after a filter, a sort, or newer files."""

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
        self._view_request = ViewRequest(order=order)
        self._applied_request: ViewRequest | None = None
        self._shown: Shown | None = None
        self._waiting: deque[Work] = deque()
        self._is_busy = False
        self._busy_with = ""
        self._cursor_node: int | None = None  # rows move; the cursor stays on its node
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
        return self._view_request.order

    @property
    def pattern(self) -> str:
        """The filter pattern on display, or the requested one while filtering."""
        return self._view_request.pattern

    @property
    def row_count(self) -> int:
        return len(self._shown_nodes)

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    @property
    def cursor_node(self) -> int | None:
        return self._cursor_node

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
        self._view_request = replace(self._view_request, entries=entries)
        self._start()

    def set_pattern(self, pattern: str) -> None:
        if pattern != self._view_request.pattern:
            self._view_request = replace(self._view_request, pattern=pattern)
            self._start()

    def set_order(self, order: Order) -> None:
        if order != self._view_request.order:
            self._view_request = replace(self._view_request, order=order)
            self._start()

    # Work in the thread

    def on_mount(self) -> None:
        self._start()

    def _start(self) -> None:
        if self.is_attached and not self._is_busy:
            self._is_busy = True
            run_in_background(self, self._run, "tree of files", group="tree")

    async def _run(self) -> None:
        try:
            while self._waiting or self._applied_request is not self._view_request:
                if self._waiting:
                    await self._in_thread("opening…", self._waiting.popleft())
                    self._adopt_rows()
                    self._find_cursor()
                else:
                    await self._apply_request(self._view_request)
        finally:
            self._is_busy = False
            self._busy_with = ""
            self.refresh()

    async def _in_thread(self, what: str, work: Callable[[], Result]) -> Result:
        future = _begun(work)
        if not future.done():
            self._busy_with = what
            self.refresh()
        return await asyncio.wrap_future(future)

    async def _apply_request(self, request: ViewRequest) -> None:
        before = self._shown
        path = self._last_path = self.cursor_path or self._last_path
        paths = {before.tree.path(node) for node in self._marks} if before is not None else set()
        line = self._cursor - self.scroll_offset.y

        def work() -> tuple[Shown | None, int | None, set[int]]:
            shown = arrange(request, before)
            if shown is None or shown.tree is self.file_tree:
                return shown, None, set()
            cursor = shown.tree.node_of(path) if path is not None else None
            return shown, cursor, set(nodes_at(shown.tree, paths))

        shown, cursor, marks = await self._in_thread("arranging…", work)
        if shown is not None and shown.tree is self.file_tree:
            cursor, marks = self._cursor_node, self._marks
        self._shown, self._marks = shown, marks
        self._applied_request = request
        self._adopt_rows()
        self._put_cursor(cursor, line)
        self.post_message(self.Arranged())
        self.post_message(self.Highlighted())

    def _put_cursor(self, node: int | None, line: int) -> None:
        """Put the cursor on `node` at screen line `line`; if a filter hides the node, on the first match."""
        rows = self.rows
        if rows is None or not rows.nodes:
            self._cursor, self._cursor_node = 0, None
            return
        row = rows.row_of(node) if node is not None else None
        if rows.matches is not None and (row is None or not rows.matches.hits[rows.nodes[row]]):
            hits = rows.matches.hits
            row = next((number for number, other in enumerate(rows.nodes) if hits[other]), row)
        self._cursor = row if row is not None else 0
        self._cursor_node = rows.nodes[self._cursor]
        self.scroll_to(y=max(0, self._cursor - line), animate=False, force=True)
        self._scroll_to_cursor()

    def _adopt_rows(self) -> None:
        self.virtual_size = Size(0, len(self._shown_nodes) + HEADING_LINES)
        self.refresh()

    def _find_cursor(self) -> None:
        """Keep the cursor on its node after rows moved, or move it to the directory that hides the node."""
        rows, node = self.rows, self._cursor_node
        if rows is None or node is None or not rows.nodes:
            return
        if self._cursor < len(rows.nodes) and rows.nodes[self._cursor] == node:
            return
        row = next(
            (
                row
                for ancestor in (node, *rows.tree.ancestors(node))
                if (row := rows.row_of(ancestor)) is not None
            ),
            0,
        )
        self._cursor, self._cursor_node = row, rows.nodes[row]
        self._scroll_to_cursor()
        if self._cursor_node != node:
            self.post_message(self.Highlighted())

    def _do(self, work: Work) -> None:
        """Do the work now if it is short; otherwise continue in a worker."""
        if self._is_busy:
            self._waiting.append(work)
            return
        future = _begun(work)
        if future.done():
            future.result()
            self._adopt_rows()
            self._find_cursor()
        else:
            self._waiting.append(future.result)
            self._start()

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
        has_answer = self._applied_request is not None and self._applied_request.entries is not None
        message = self._busy_with or (self.empty_text if has_answer else "")
        if y != max(1, self.size.height // 2) or not message:
            return Strip.blank(width, self.rich_style)
        message = clip(sanitize(message), width)
        left = (width - cell_width(message)) // 2
        style = self.rich_style + self.get_component_rich_style("file-tree--empty", partial=True)
        return Strip([Segment(" " * left + message, style)]).adjust_cell_length(width, style)

    # Navigation

    def _cursor_moved(self) -> None:
        self._cursor_node = self._shown_nodes[self._cursor]
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
        rows, node = self.rows, self.cursor_node
        if rows is not None and node is not None:
            self._do(lambda: rows.toggle(node))

    def open_below(self) -> None:
        rows, node = self.rows, self.cursor_node
        if rows is None or node is None:
            return
        top = node if rows.tree.is_directory(node) else rows.tree.parents[node]
        if top != ROOT:
            self._do(lambda: rows.toggle_below(top))

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


def _begun(work: Callable[[], Result]) -> Future[Result]:
    """Begin work in the thread; it is done on return if it is short."""
    future = _THREAD.submit(work)
    wait([future], AT_ONCE_S)
    return future
