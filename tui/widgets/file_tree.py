"""A tree of files with directory totals, which stays fast with a hundred thousand files.

Textual's Tree creates an object per file on the event loop. This tree draws only its visible lines; its rows
(``tui.analysis.file_tree``) are built, filtered and sorted in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from tui.analysis.file_tree.rows import BY_NAME, Order, SortKey, VisibleRows, arranged
from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree
from tui.tables.column import Column, Span
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.units import age, bytes_iec, count, percent, thin_bar
from tui.widgets.background import run_in_background
from tui.widgets.row_table import RowTable

SHARE_CELLS = 8
BLOCKING_WAIT_S = 0.008
"""Seconds that the event loop waits for the thread, so that a small tree changes before the next key."""
SORT_KEY_BY_COLUMN = {
    "name": SortKey.NAME,
    **dict.fromkeys(("size", "share", "percent"), SortKey.SIZE),
    "time": SortKey.TIME,
    "type": SortKey.TYPE,
}
_EXECUTOR = ThreadPoolExecutor(1, thread_name_prefix="files")


@dataclass(frozen=True, slots=True, eq=False)
class ViewRequest:
    """The files, filter and sort order to show; each change creates a new request."""

    entries: Sequence[FileEntry] | None = None
    pattern: str = ""
    order: Order = BY_NAME


def middle_cut(text: str, cells: int) -> str:
    """Shorten a file name in the middle, because names differ at both ends.

    A name that is not ASCII, or has less than 8 cells of space, is cut at the end.
    """
    if len(text) <= cells and cell_width(text) <= cells:
        return text
    if cells < 8 or not text.isascii():
        return clip(text, cells)
    tail = cells // 2
    return text[: cells - tail - 1] + "…" + text[-tail:]


class FileTreeView(RowTable[int]):
    """A tree of ``FileEntry`` records. When the files change, cursor, marks and open directories stay."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    FileTreeView {
        &.-empty { max-height: 100%; }
        & > .file-tree--empty { color: $text-muted; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"file-tree--empty"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "go_in", "open", show=False),
        Binding("left,h", "go_out", "close", show=False),
    ]

    class FileChosen(Message):
        """The user pressed enter on a file, or clicked the file that the cursor was on."""

    class Arranged(Message):
        """The tree now shows other files, or applies another filter."""

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
        super().__init__(self._columns(), str, id=id, opens=False)
        self.empty_text = empty_text
        self._now_s = now_s
        self._request = ViewRequest(order=order)
        self._arranged: tuple[ViewRequest, VisibleRows | None] = (ViewRequest(), None)
        """The last request that was carried out, and its rows; only the thread changes it."""
        self.visible_rows: VisibleRows | None = None
        """The rows on display; None without files."""
        self._newest_future: Future[None] | None = None
        self._activity = ""
        """What the thread is doing, such as "arranging…"; empty if it is idle."""
        self._last_path: str | None = None
        """Path of the last cursor, to restore the cursor if the tree was empty in between."""
        self._marks: set[int] = set()
        """Node numbers of the marked files and directories."""

    # Current state

    @property
    def file_tree(self) -> FileTree | None:
        return None if self.visible_rows is None else self.visible_rows.tree

    @property
    def order(self) -> Order:
        """The requested sort order; while the thread is sorting, the tree still shows another order."""
        return self._request.order

    @property
    def pattern(self) -> str:
        """The requested filter; while the thread is filtering, the tree still applies another filter."""
        return self._request.pattern

    @property
    def is_busy(self) -> bool:
        return bool(self._activity)

    @property
    def cursor_path(self) -> str | None:
        """The path under the cursor, as the server sent it."""
        node, tree = self.cursor_row, self.file_tree
        return tree.path(node) if node is not None and tree is not None else None

    @property
    def marked(self) -> frozenset[int]:
        return frozenset(self._marks)

    def set_entries(self, entries: Sequence[FileEntry] | None) -> None:
        """Show these files; None clears the tree. The caller must not change the sequence afterwards."""
        self._set_request(replace(self._request, entries=entries))

    def set_pattern(self, pattern: str) -> None:
        self._set_request(replace(self._request, pattern=pattern))

    def set_order(self, order: Order) -> None:
        self._set_request(replace(self._request, order=order))

    # Work in the thread

    def on_mount(self) -> None:
        self._set_request(self._request)

    def _set_request(self, request: ViewRequest) -> None:
        self._request = request
        self.sort_mark = (request.order.key, request.order.descending)
        if self.is_attached:
            self._run_in_thread(self._arrange, "arranging…")

    def _arrange(self) -> None:
        """Compute the rows of the newest request, unless they are computed already. Runs in the thread."""
        request, (arranged_request, rows) = self._request, self._arranged
        if arranged_request is not request:
            entries = request.entries
            rows = None if entries is None else arranged(entries, request.pattern, request.order, rows)
            self._arranged = request, rows

    def _change_open_directories(self, change: Callable[[VisibleRows], VisibleRows]) -> None:
        tree = self.file_tree

        def work() -> None:
            request, rows = self._arranged
            if rows is not None and rows.tree is tree:
                self._arranged = request, change(rows)

        self._run_in_thread(work, "opening…")

    def _run_in_thread(self, work: Callable[[], None], activity: str) -> None:
        """Run ``work`` in the thread and show its result: before returning if it is quick, else later.

        Meanwhile, ``activity`` is shown beside the heading.
        """
        self._newest_future = future = _EXECUTOR.submit(work)
        wait([future], BLOCKING_WAIT_S)
        if future.done():
            self._show_result(future)
        else:
            self._activity = activity
            self.refresh()
            run_in_background(
                self, partial(self._show_result_when_done, future), "tree of files", group="tree"
            )

    async def _show_result_when_done(self, future: Future[None]) -> None:
        await asyncio.wait([asyncio.wrap_future(future)])
        self._show_result(future)

    def _show_result(self, future: Future[None]) -> None:
        if future is self._newest_future:
            self._activity = ""
        self.refresh()
        future.result()
        before, self.visible_rows = self.visible_rows, self._arranged[1]
        if self.visible_rows is not before:
            self._show_rows(before)

    def _show_rows(self, before: VisibleRows | None) -> None:
        """Show ``visible_rows`` in place of the rows ``before``; cursor and marks stay on their nodes.

        In another tree, nodes have other numbers, so they are found by their paths.
        """
        rows, node = self.visible_rows, self.cursor_row
        previous_tree = None if before is None else before.tree
        is_other_tree = previous_tree is not self.file_tree
        if is_other_tree:
            marked_paths = [] if previous_tree is None else list(map(previous_tree.path, self._marks))
            if previous_tree is not None and node is not None:
                self._last_path = previous_tree.path(node)
            self._marks, node = set(), None
            if rows is not None and self._last_path is not None:
                self._marks, node = rows.tree.nodes_at(marked_paths), rows.tree.node_at.get(self._last_path)
        has_other_filter = before is None or rows is None or before.matches is not rows.matches
        self._cursor_target = self._key_for(node, find_match=has_other_filter)
        self.set_rows(rows.nodes if rows is not None else ())
        if is_other_tree or has_other_filter:
            self.post_message(self.Arranged())
            self.post_message(self.Highlighted(self, self.cursor_key or ""))

    def _key_for(self, node: int | None, *, find_match: bool) -> str | None:
        """Return the key of a node; if the node has no row, of the closest directory that has a row.

        With ``find_match``, return the key of the first match unless that node matches the filter.
        """
        rows = self.visible_rows
        if rows is None or not rows.nodes:
            return None
        candidates = () if node is None else (node, *rows.tree.ancestors(node))
        visible_node = next((other for other in candidates if rows.row_of(other) is not None), rows.nodes[0])
        if find_match and rows.matches is not None and not rows.matches.hits[visible_node]:
            visible_node = next((other for other in rows.nodes if rows.matches.hits[other]), visible_node)
        return str(visible_node)

    # Drawing

    def _columns(self) -> tuple[Column[int], ...]:
        return (
            Column("name", "name", self._name_cell, 30, flex=1, max_width=64, priority=10),
            Column("size", "size", self._size_cell, 9, align="right", priority=9),
            Column("share", "share", self._share_cell, SHARE_CELLS, priority=7),
            Column("percent", "", self._percent_cell, 4, align="right", priority=4),
            Column(
                "count", "files", self._count_cell, 7, align="right", priority=3, needed_by=self._is_directory
            ),
            Column("time", "age", self._age_cell, 5, align="right", priority=6),
            Column("type", "type", self._type_cell, 11, priority=5),
        )

    def _name_cell(self, node: int) -> list[Span]:
        rows = self._shown_rows
        tree, cells = rows.tree, self._layout[0][1]
        is_directory = self._is_directory(node)
        indent = " " * min(2 * tree.depths[node], cells)
        if len(indent) > cells // 2:
            # So much indentation leaves no room for names: show the depth as a number instead.
            indent = clip(f"{tree.depths[node]}› ", cells // 2)
        sign = ("▾" if rows.is_open(node) else "▸") if is_directory else " "
        name = sanitize(tree.names[node]) + ("/" if is_directory else "")
        is_match = rows.matches is not None and bool(rows.matches.hits[node])
        tone = "accent" if is_match else "strong" if is_directory else "plain"
        mark = ("✓" if node in self._marks else " ", "good")
        return [(indent + sign, "muted"), mark, (middle_cut(name, max(1, cells - len(indent) - 2)), tone)]

    @property
    def _shown_rows(self) -> VisibleRows:
        assert self.visible_rows is not None
        return self.visible_rows

    def _size_cell(self, node: int) -> list[Span]:
        return [(bytes_iec(self._shown_rows.size_bytes(node)), "plain")]

    def _share_cell(self, node: int) -> list[Span]:
        bar, _ = thin_bar(self._shown_rows.share_of_parent(node), SHARE_CELLS)
        return [(bar, "bar")]

    def _percent_cell(self, node: int) -> list[Span]:
        share = self._shown_rows.share_of_parent(node)
        return [("<1%" if 0 < share < 0.005 else percent(share), "muted")]

    def _is_directory(self, node: int) -> bool:
        return self._shown_rows.tree.is_directory(node)

    def _count_cell(self, node: int) -> list[Span]:
        return [(count(self._shown_rows.file_count(node)) if self._is_directory(node) else "", "muted")]

    def _age_cell(self, node: int) -> list[Span]:
        newest_s = self._shown_rows.tree.newest_s[node]
        return [("–" if newest_s is None else age(self._now_s() - newest_s), "muted")]

    def _type_cell(self, node: int) -> list[Span]:
        return [(self._shown_rows.tree.type_of(node), "muted")]

    def _arrow(self, column: Column[int]) -> str:
        shows_activity = column.id == "name" and self._activity
        return super()._arrow(column) + (f"  · {self._activity}" if shows_activity else "")

    def render_line(self, y: int) -> Strip:
        message = self._activity or (self.empty_text if self.visible_rows is not None else "")
        if self.row_count or y != max(1, self.size.height // 2) or not message:
            return super().render_line(y)
        width = self.scrollable_content_region.width
        message = clip(sanitize(message), width)
        left = (width - cell_width(message)) // 2
        style = self.rich_style + self.get_component_rich_style("file-tree--empty", partial=True)
        return Strip([Segment(" " * left + message, style)]).adjust_cell_length(width, style)

    # Navigation

    def action_go_in(self) -> None:
        node = self.cursor_row
        if node is None or not self._is_directory(node):
            return
        rows, row_below = self._shown_rows, self._cursor + 1
        if not rows.is_open(node):
            self.toggle_directory()
        elif row_below < len(rows.nodes) and rows.tree.parents[rows.nodes[row_below]] == node:
            self._move_cursor(row_below)

    def action_go_out(self) -> None:
        node = self.cursor_row
        if node is None:
            return
        rows = self._shown_rows
        if rows.is_open(node):
            self.toggle_directory()
        elif (row := rows.row_of(rows.tree.parents[node])) is not None:
            self._move_cursor(row)

    # Actions on the current node

    def choose(self) -> None:
        node = self.cursor_row
        if node is not None and self._is_directory(node):
            self.toggle_directory()
        elif node is not None:
            self.post_message(self.FileChosen())

    def toggle_directory(self) -> None:
        node = self.cursor_row
        if node is not None:
            self._change_open_directories(lambda rows: rows.toggled(node))

    def open_below(self) -> None:
        node = self.cursor_row
        if node is None:
            return
        top = node if self._is_directory(node) else self._shown_rows.tree.parents[node]
        if top != ROOT:
            self._change_open_directories(lambda rows: rows.toggled_below(top))

    def toggle_mark(self) -> None:
        node = self.cursor_row
        if node is None:
            return
        self._marks ^= {node}
        self.refresh()
        self.post_message(self.MarksChanged())
        self._move_cursor(self._cursor + 1)

    def clear_marks(self) -> bool:
        had_marks = bool(self._marks)
        self._marks.clear()
        if had_marks:
            self.refresh()
            self.post_message(self.MarksChanged())
        return had_marks

    # Mouse

    def on_row_table_heading_pressed(self, event: RowTable.HeadingPressed) -> None:
        event.stop()
        self.sort_by(SORT_KEY_BY_COLUMN[event.column_id])

    def _row_clicked(self, *, was_at_cursor: bool) -> None:
        node = self.cursor_row
        if node is not None and (was_at_cursor or self._is_directory(node)):
            self.choose()

    def sort_by(self, key: SortKey) -> None:
        order = self.order
        descending = key in (SortKey.SIZE, SortKey.TIME)
        self.set_order(order.reversed() if order.key is key else Order(key, descending))
