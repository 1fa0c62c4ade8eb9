"""The state of a file tree: its rows as filtered, sorted and opened, marks and cursor; no drawing.

Long changes run in slices on the event loop, so that keys stay responsive.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.widget import Widget

from tui.analysis.file_tree import (
    BY_NAME,
    ROOT,
    FileEntry,
    FileTree,
    Order,
    Steps,
    VisibleRows,
    build_steps,
    filter_steps,
)
from tui.analysis.file_tree.tree import STEP_ITEMS
from tui.text.units import percent


@dataclass
class TreeMessage(Message):
    """Base class of file tree messages."""

    view: Widget

    @property
    def control(self) -> Widget:
        return self.view


class Highlighted(TreeMessage):
    """The cursor moved to another node."""

    def can_replace(self, message: Message) -> bool:
        """Replace older messages: only the newest position counts."""
        return isinstance(message, Highlighted) and message.view is self.view


class FileChosen(TreeMessage):
    """A file was chosen by Enter or a click on the row under the cursor."""


class Arranged(TreeMessage):
    """The rows changed: after a filter, a sort, or newer files."""


class MarksChanged(TreeMessage):
    """The set of marked nodes changed."""


Result = TypeVar("Result")

SLICE_S = 0.008
"""Length of a slice of work; keys are handled and lines painted between slices."""


class SlicedTask:
    """Steps run in slices; ``result`` is set once ``is_done``."""

    def __init__(self, steps: Steps[Result], monotonic_s: Callable[[], float] = time.perf_counter) -> None:
        self._steps = steps
        self._monotonic_s = monotonic_s
        self.is_done = False
        self.fraction = 0.0

    def run_slice(self) -> bool:
        """Work for one slice; return True if all is done."""
        until = self._monotonic_s() + SLICE_S
        while not self.is_done and self._monotonic_s() < until:
            try:
                self.fraction = next(self._steps)
            except StopIteration as end:
                self.result = end.value
                self.is_done = True
        return self.is_done

    async def run(self, on_progress: Callable[[float], object], should_continue: Callable[[], bool]) -> bool:
        """Work until done, or until ``should_continue`` returns False; return True if all is done."""
        while not self.run_slice():
            on_progress(self.fraction)
            await asyncio.sleep(0)
            if not should_continue():
                self._steps.close()
                return False
        return True


Progress = Callable[[str, float], object]


@dataclass(frozen=True, slots=True, eq=False)
class ViewRequest:
    """The requested state of a tree; a new object for every change."""

    entries: Sequence[FileEntry] | None = None
    pattern: str = ""
    order: Order = BY_NAME


class TreeModel:
    """The tree and its rows; ``plain`` are the rows without a filter, which keep their open directories."""

    def __init__(self, on_progress: Progress) -> None:
        self._on_progress = on_progress
        self._built_from: Sequence[FileEntry] | None = None
        self.tree: FileTree | None = None
        self.plain: VisibleRows | None = None
        self.rows: VisibleRows | None = None

    async def arrange(self, wish: ViewRequest, is_current: Callable[[], bool]) -> bool:
        """Update ``rows`` to match `wish`; return False if a newer request came first."""
        if wish.entries is None:
            self.tree = self.plain = self.rows = self._built_from = None
            return True
        if self._built_from is not wish.entries:
            await self._build(wish)
        tree, plain = self.tree, self.plain
        assert tree is not None and plain is not None
        if not wish.pattern:
            if plain.order != wish.order and not await self._run(
                "sorting", plain.show_steps(order=wish.order), is_current
            ):
                return False
            self.rows = plain
            return True
        rows = self.rows
        if (
            rows is None
            or rows.tree is not tree
            or rows.matches is None
            or rows.matches.pattern != wish.pattern
        ):
            filtering = SlicedTask(filter_steps(tree, wish.pattern))
            if not await filtering.run(lambda done: self._on_progress("filtering", done), is_current):
                return False
            rows = VisibleRows(tree, order=wish.order, matches=filtering.result)
            steps = rows.show_steps(open_all=True)
        elif rows.order != wish.order:
            steps = rows.show_steps(order=wish.order)
        else:
            return True
        if not await self._run("sorting", steps, is_current):
            return False
        self.rows = rows
        return True

    async def _build(self, wish: ViewRequest) -> None:
        """Build a new tree.

        Open directories stay open. The first tree opens its chain of single directories.
        """
        assert wish.entries is not None
        building = SlicedTask(build_steps(wish.entries))
        await building.run(lambda done: self._on_progress("arranging", done), _always)
        tree: FileTree = building.result
        before = self.plain
        plain = VisibleRows(tree, order=wish.order)
        if before is None:
            plain.open_nodes.update(_single_child_chain(tree))
        await self._run(
            "arranging", plain.show_steps(open_paths=before.open_paths() if before else ()), _always
        )
        self.tree, self.plain, self._built_from = tree, plain, wish.entries

    async def _run(self, what: str, steps: Steps[Result], should_continue: Callable[[], bool]) -> bool:
        return await SlicedTask(steps).run(lambda done: self._on_progress(what, done), should_continue)


def _always() -> bool:
    return True


def _single_child_chain(tree: FileTree) -> list[int]:
    """Return the chain of directories from the root that have no siblings."""
    found: list[int] = []
    node = ROOT
    while True:
        below = tree.children[node] or []
        if len(below) != 1 or not tree.is_directory(below[0]):
            return found
        node = below[0]
        found.append(node)


def open_below_steps(rows: VisibleRows, node: int) -> Steps[None]:
    """Open `node` and every directory below it, or close them if all of them are open."""
    kept = rows.matches.kept if rows.matches is not None else None
    below, waiting, seen = [], [node], 0
    while waiting:
        each = waiting.pop()
        children = rows.tree.children[each]
        if children is None or (kept is not None and not kept[each]):
            continue
        below.append(each)
        for child in children:
            seen += 1
            if rows.tree.children[child] is not None:
                waiting.append(child)
            if seen % STEP_ITEMS == 0:
                yield seen / len(rows.tree) / 2
    if rows.open_nodes.issuperset(below):
        rows.open_nodes.difference_update(below)
    else:
        rows.open_nodes.update(below)
    yield from rows.show_steps()


HEADING_LINES = 1
REPORT_EVERY_S = 0.15
"""Minimum interval between progress updates, because repainting takes time from the work itself."""
Work = Callable[[], Steps[object] | None]
"""Work on the rows, run in slices; returns None if there is nothing left to do."""


class BaseFileTreeView(ScrollView):
    """The current tree, the requested changes, marks and cursor; draws nothing itself."""

    def __init__(self, *, order: Order, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view_request = ViewRequest(order=order)
        self._applied_request: ViewRequest | None = None
        self._tree_model = TreeModel(self._note_progress)
        self._tasks_waiting: deque[Work] = deque()
        self._is_busy = False
        self._busy_with = ""
        self._progress_posted_s = 0.0
        self._cursor = 0
        self._cursor_node: int | None = None  # rows move; the cursor stays on its node
        self._last_path: str | None = None  # restores the cursor if files return after the tree was empty
        self._marks: set[int] = set()

    # Current state

    @property
    def file_tree(self) -> FileTree | None:
        return self._tree_model.tree

    @property
    def rows(self) -> VisibleRows | None:
        return self._tree_model.rows

    @property
    def order(self) -> Order:
        """The sort order on display, or the requested one while sorting."""
        return self._view_request.order

    @property
    def pattern(self) -> str:
        """The filter pattern on display, or the requested one while filtering."""
        return self._view_request.pattern

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
        """Show only matches and the directories that contain them; an empty pattern shows everything."""
        if pattern != self._view_request.pattern:
            self._view_request = replace(self._view_request, pattern=pattern)
            self._start()

    def set_order(self, order: Order) -> None:
        if order != self._view_request.order:
            self._view_request = replace(self._view_request, order=order)
            self._start()

    # Sliced work

    def on_mount(self) -> None:
        self._start()

    def _start(self) -> None:
        if self.is_attached and not self._is_busy:
            self._is_busy = True
            self.run_worker(self._run(), name="tree of files", group="tree", exit_on_error=False)

    async def _run(self) -> None:
        try:
            while self._tasks_waiting or self._applied_request is not self._view_request:
                if self._tasks_waiting:
                    steps = self._tasks_waiting.popleft()()
                    if steps is not None:
                        await SlicedTask(steps).run(
                            lambda done: self._note_progress("opening", done), _always
                        )
                        self._adopt_rows()
                        self._find_cursor()
                else:
                    await self._apply_request(self._view_request)
        finally:
            self._is_busy = False
            self._busy_with = ""
            self.refresh()

    async def _apply_request(self, wish: ViewRequest) -> None:
        path = self._last_path = self.cursor_path or self._last_path
        marks = [self.file_tree.path(node) for node in self._marks] if self.file_tree is not None else []
        tree, cursor = self.file_tree, self.cursor_node
        line = self._cursor - self.scroll_offset.y
        if not await self._tree_model.arrange(wish, lambda: self._view_request is wish):
            return
        self._applied_request = wish
        if self.file_tree is not None and self.file_tree is not tree:
            wanted = set(marks)
            # Restore all marks in one pass over the paths.
            self._marks = (
                {node for node in range(1, len(self.file_tree)) if self.file_tree.path(node) in wanted}
                if wanted
                else set()
            )
            cursor = self.file_tree.node_of(path) if path is not None else None
        self._adopt_rows()
        self._put_cursor(cursor, line)
        self.post_message(Arranged(self))
        self._post_highlighted()

    def _put_cursor(self, node: int | None, line: int) -> None:
        """Put the cursor on `node` at screen line `line`.

        With a filter, a node that is hidden or no match gives way to the first match.
        """
        rows = self.rows
        if rows is None or not rows.nodes:
            self._cursor, self._cursor_node = 0, None
            return
        row = rows.row_of(node) if node is not None else None
        if rows.matches is not None and (row is None or not rows.matches.hits[rows.nodes[row]]):
            hits = rows.matches.hits
            row = next((place for place, each in enumerate(rows.nodes) if hits[each]), row)
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
            (row for each in (node, *rows.tree.ancestors(node)) if (row := rows.row_of(each)) is not None), 0
        )
        self._cursor, self._cursor_node = row, rows.nodes[row]
        self._scroll_to_cursor()
        if self._cursor_node != node:
            self._post_highlighted()

    def _do(self, work: Work) -> None:
        """Do the work now if it fits in one slice; otherwise continue in a worker."""
        if self._is_busy:
            self._tasks_waiting.append(work)
            return
        steps = work()
        if steps is None:
            return
        sliced = SlicedTask(steps)
        if sliced.run_slice():
            self._adopt_rows()
            self._find_cursor()
        else:
            self._tasks_waiting.append(lambda: steps)
            self._start()

    def _note_progress(self, what: str, done: float) -> None:
        now_s = time.monotonic()
        if now_s - self._progress_posted_s >= REPORT_EVERY_S:
            self._progress_posted_s = now_s
            self._busy_with = f"{what} {percent(done)}"
            self.refresh(
                Region(0, 0, self.size.width, self.size.height if not self._shown_nodes else HEADING_LINES)
            )

    # The cursor

    def _move(self, index: int) -> None:
        index = max(0, min(index, len(self._shown_nodes) - 1))
        if not self._shown_nodes or index == self._cursor:
            return
        self._cursor, self._cursor_node = index, self._shown_nodes[index]
        self._scroll_to_cursor()
        self.refresh()
        self._post_highlighted()

    def _scroll_to_cursor(self) -> None:
        self.scroll_to_region(
            Region(0, self._cursor, 1, 1 + HEADING_LINES), animate=False, force=True, x_axis=False
        )

    def _post_highlighted(self) -> None:
        self.post_message(Highlighted(self))
