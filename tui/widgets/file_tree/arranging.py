"""From what is wanted (files, pattern, order) to rows, in slices; newer wishes overtake older ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui.insight.file_tree import (
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
from tui.insight.file_tree.steps import STEP_ITEMS
from tui.widgets.file_tree.slices import Result, Sliced

Progress = Callable[[str, float], object]


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What is to be shown; a new object for every change."""

    entries: Sequence[FileEntry] | None = None
    pattern: str = ""
    order: Order = BY_NAME


class Arranger:
    """Holds the tree and its rows; ``plain`` are those without a filter, whose open directories last."""

    def __init__(self, on_progress: Progress) -> None:
        self._on_progress = on_progress
        self._built_from: Sequence[FileEntry] | None = None
        self.tree: FileTree | None = None
        self.plain: VisibleRows | None = None
        self.rows: VisibleRows | None = None

    async def arrange(self, wish: Wish, is_current: Callable[[], bool]) -> bool:
        """Make ``rows`` what is wished for; False if the wish was overtaken before that."""
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
            filtering = Sliced(filter_steps(tree, wish.pattern))
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

    async def _build(self, wish: Wish) -> None:
        """A new tree: what was open stays open, and the only way in is opened for a start."""
        assert wish.entries is not None
        building = Sliced(build_steps(wish.entries))
        await building.run(lambda done: self._on_progress("arranging", done), _always)
        tree: FileTree = building.result
        before = self.plain
        plain = VisibleRows(tree, order=wish.order)
        if before is None:
            plain.open_nodes.update(_only_ways(tree))
        await self._run(
            "arranging", plain.show_steps(open_paths=before.open_paths() if before else ()), _always
        )
        self.tree, self.plain, self._built_from = tree, plain, wish.entries

    async def _run(self, what: str, steps: Steps[Result], goes_on: Callable[[], bool]) -> bool:
        return await Sliced(steps).run(lambda done: self._on_progress(what, done), goes_on)


def _always() -> bool:
    return True


def _only_ways(tree: FileTree) -> list[int]:
    """The directories from the top that are alone in theirs."""
    found: list[int] = []
    node = ROOT
    while True:
        below = tree.children[node] or []
        if len(below) != 1 or not tree.is_directory(below[0]):
            return found
        node = below[0]
        found.append(node)


def open_below_steps(rows: VisibleRows, node: int) -> Steps[None]:
    """Open every directory below the node, it too; close them if all of them are open."""
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
