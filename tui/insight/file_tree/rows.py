"""The rows that are on show: a directory's children while it is open, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from tui.insight.file_tree.filtering import Matches
from tui.insight.file_tree.ordering import BY_NAME, Order, sort_steps
from tui.insight.file_tree.steps import STEP_ITEMS, Steps
from tui.insight.file_tree.tree import ROOT, FileTree

_STEP_NAMES = 8 * STEP_ITEMS


class VisibleRows:
    """Visible nodes in order, ``nodes[row]``, with their directories opened and closed in place.

    With ``matches`` only kept nodes are shown. Methods ending in ``_steps`` change the rows when they have
    run to their end, not before; run one at a time. ``open_nodes`` may be kept over a refresh by paths
    (``open_paths``).
    """

    def __init__(self, tree: FileTree, *, order: Order = BY_NAME, matches: Matches | None = None) -> None:
        self.tree = tree
        self.order = order
        self.matches = matches
        self.open_nodes: set[int] = set()
        self.nodes: list[int] = []
        self._sorted: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def is_open(self, node: int) -> bool:
        """Whether the node's children are shown."""
        return node in self.open_nodes

    def size_bytes(self, node: int) -> int:
        """The node's total, of what is kept where there is a filter."""
        return (self.matches.sizes if self.matches else self.tree.sizes)[node]

    def file_count(self, node: int) -> int:
        """The node's files, of what is kept where there is a filter."""
        return (self.matches.file_counts if self.matches else self.tree.file_counts)[node]

    def share_of_parent(self, node: int) -> float:
        """Its part of its directory's bytes, from 0 to 1."""
        whole = self.size_bytes(self.tree.parents[node])
        return self.size_bytes(node) / whole if whole else 0.0

    def row_of(self, node: int) -> int | None:
        """The row of a node, None if it is not on show."""
        try:
            return self.nodes.index(node)
        except ValueError:
            return None

    def children_steps(self, node: int) -> Steps[list[int]]:
        """The children to show, in order; sorted once."""
        known = self._sorted.get(node)
        if known is not None:
            return known
        below: Iterable[int] = self.tree.children[node] or ()
        if self.matches is not None:
            kept = self.matches.kept
            below = [child for child in below if kept[child]]
        found = yield from sort_steps(self.tree, list(below), self.order)
        self._sorted[node] = found
        return found

    def open_steps(self, row: int) -> Steps[int]:
        """Open the directory at that row; returns how many rows came in below it."""
        node = self.nodes[row]
        if not self.tree.is_directory(node) or node in self.open_nodes:
            return 0
        self.open_nodes.add(node)
        found = yield from self._flatten_steps(node)
        self.nodes[row + 1 : row + 1] = found
        return len(found)

    def close(self, row: int) -> int:
        """Close the directory at that row; returns how many rows went away."""
        node = self.nodes[row]
        if node not in self.open_nodes:
            return 0
        self.open_nodes.discard(node)
        depths, nodes = self.tree.depths, self.nodes
        end = row + 1
        while end < len(nodes) and depths[nodes[end]] > depths[node]:
            end += 1
        del nodes[row + 1 : end]
        return end - row - 1

    def show_steps(
        self, *, order: Order | None = None, open_paths: Iterable[str] = (), open_all: bool = False
    ) -> Steps[None]:
        """Make all rows anew: in another order, with these directories open too, or all of them."""
        if order is not None and order != self.order:
            self.order = order
            self._sorted.clear()
        if open_all:
            self.open_nodes = {
                node
                for node in range(1, len(self.tree))
                if self.tree.children[node] is not None and (not self.matches or self.matches.kept[node])
            }
        yield from self._open_by_path_steps(set(open_paths))
        self.nodes = yield from self._flatten_steps(ROOT)

    def open_paths(self) -> set[str]:
        """The paths of the open directories, to open them again in a newer tree."""
        return {self.tree.path(node) for node in self.open_nodes}

    def _open_by_path_steps(self, wanted: set[str]) -> Steps[None]:
        """Open directories by their paths, from the top down: in a closed one nothing is open."""
        tree, cost = self.tree, 0
        waiting = [ROOT] if wanted else []
        while waiting:
            for child in tree.children[waiting.pop()] or ():
                if tree.children[child] is None:
                    continue
                if tree.path(child) in wanted:
                    self.open_nodes.add(child)
                    waiting.append(child)
                cost += tree.depths[child] + 1  # what a path costs to put together
                if cost > _STEP_NAMES:
                    cost = 0
                    yield 0.0

    def _flatten_steps(self, top: int) -> Steps[list[int]]:
        """What is visible below a node, it being open, down to every open directory."""
        found: list[int] = []
        waiting = list(reversed((yield from self.children_steps(top))))
        while waiting:
            node = waiting.pop()
            found.append(node)
            if node in self.open_nodes:
                below = yield from self.children_steps(node)
                waiting.extend(reversed(below))
            if len(found) % STEP_ITEMS == 0:
                yield len(found) / len(self.tree)
        return found
