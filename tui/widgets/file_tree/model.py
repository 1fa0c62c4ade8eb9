"""The rows of a file tree as filtered, sorted and opened; no drawing.

Long changes run in slices on the event loop, so that keys stay responsive.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tui.analysis.file_tree.rows import BY_NAME, Order, VisibleRows, filter_steps
from tui.analysis.file_tree.tree import ROOT, STEP_ITEMS, FileEntry, FileTree, Steps, build_steps

Result = TypeVar("Result")

SLICE_S = 0.008
"""Length of a slice of work; keys are handled and lines painted between slices."""


class SlicedTask:
    """Steps run in slices; ``result`` is set once ``is_done``."""

    def __init__(self, steps: Steps[Result]) -> None:
        self._steps = steps
        self.is_done = False
        self.fraction = 0.0

    def run_slice(self) -> bool:
        until = time.perf_counter() + SLICE_S
        while not self.is_done and time.perf_counter() < until:
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

    async def arrange(self, request: ViewRequest, is_current: Callable[[], bool]) -> bool:
        """Update ``rows`` to match `request`; return False if a newer request came first."""
        if request.entries is None:
            self.tree = self.plain = self.rows = self._built_from = None
            return True
        if self._built_from is not request.entries:
            await self._build(request)
        tree, plain = self.tree, self.plain
        assert tree is not None and plain is not None
        if not request.pattern:
            if plain.order != request.order and not await self._run(
                "sorting", plain.show_steps(order=request.order), is_current
            ):
                return False
            self.rows = plain
            return True
        rows = self.rows
        if (
            rows is None
            or rows.tree is not tree
            or rows.matches is None
            or rows.matches.pattern != request.pattern
        ):
            filtering = SlicedTask(filter_steps(tree, request.pattern))
            if not await filtering.run(lambda done: self._on_progress("filtering", done), is_current):
                return False
            rows = VisibleRows(tree, order=request.order, matches=filtering.result)
            steps = rows.show_steps(open_all=True)
        elif rows.order != request.order:
            steps = rows.show_steps(order=request.order)
        else:
            return True
        if not await self._run("sorting", steps, is_current):
            return False
        self.rows = rows
        return True

    async def _build(self, request: ViewRequest) -> None:
        """Build a new tree with the same open directories, first of all the chain of single ones."""
        assert request.entries is not None
        building = SlicedTask(build_steps(request.entries))
        await building.run(lambda done: self._on_progress("arranging", done), always)
        tree: FileTree = building.result
        before = self.plain
        plain = VisibleRows(tree, order=request.order)
        if before is None:
            plain.open_nodes.update(_single_child_chain(tree))
        await self._run(
            "arranging", plain.show_steps(open_paths=before.open_paths() if before else ()), always
        )
        self.tree, self.plain, self._built_from = tree, plain, request.entries

    async def _run(self, what: str, steps: Steps[Result], should_continue: Callable[[], bool]) -> bool:
        return await SlicedTask(steps).run(lambda done: self._on_progress(what, done), should_continue)


def always() -> bool:
    return True


def _single_child_chain(tree: FileTree) -> list[int]:
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
