"""The visible rows of a file tree: filtered, sorted, with directories opened and closed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tui.analysis.file_tree.tree import ROOT, STEP_ITEMS, FileTree, Steps
from tui.analysis.ordering import ordered

GLOB_SIGNS = "*?["


@dataclass(frozen=True, slots=True)
class Matches:
    """The result of a filter.

    ``kept[node]`` is 1 for matches, their directories, and everything in a matching directory. ``sizes``
    (bytes) and ``file_counts`` are totals over the kept nodes; for the rest they are the tree's own.
    """

    pattern: str
    kept: bytearray
    hits: bytearray
    sizes: list[int]
    file_counts: list[int]

    @property
    def file_count(self) -> int:
        return self.file_counts[ROOT]

    @property
    def total_bytes(self) -> int:
        return self.sizes[ROOT]


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a case-insensitive test of names: a glob if the pattern contains ``* ? [``, else a substring."""
    if any(sign in pattern for sign in GLOB_SIGNS):
        expression = re.compile(fnmatch.translate(pattern), re.IGNORECASE)
        return lambda text: expression.match(text) is not None
    wanted = pattern.lower()
    return lambda text: wanted in text.lower()


def filter_steps(tree: FileTree, pattern: str) -> Steps[Matches]:
    """Apply a pattern in steps.

    A pattern with a slash is matched against listed paths, others against names.
    """
    matches = compile_pattern(pattern)
    size = len(tree)
    hits, kept = bytearray(size), bytearray(size)
    sizes, counts = list(tree.sizes), list(tree.file_counts)
    by_path = "/" in pattern
    for node in range(1, size):
        if by_path:
            # Directories that are not listed are kept through their files, since building their paths is
            # slow.
            entry = tree.entry(node)
            text = entry.path if entry else ""
        else:
            text = tree.names[node]
        if hits[tree.parents[node]] or matches(text):
            hits[node] = kept[node] = 1
        if node % STEP_ITEMS == 0:
            yield node / size / 2
    for node in range(size - 1, ROOT, -1):
        parent = tree.parents[node]
        if kept[node]:
            kept[parent] = 1
        else:
            sizes[node] = counts[node] = 0
        if node % STEP_ITEMS == 0:
            yield 0.5 + (size - node) / size / 4
    yield from _add_up(tree, sizes, counts)
    return Matches(pattern=pattern, kept=kept, hits=hits, sizes=sizes, file_counts=counts)


def _add_up(tree: FileTree, sizes: list[int], counts: list[int]) -> Steps[None]:
    size = len(tree)
    for node in range(size):
        if tree.children[node] is not None:
            sizes[node] = counts[node] = 0
    for node in range(size - 1, ROOT, -1):
        parent = tree.parents[node]
        sizes[parent] += sizes[node]
        counts[parent] += counts[node]
        if node % STEP_ITEMS == 0:
            yield 0.75 + (size - node) / size / 4


RUN_ITEMS = 4096
"""Items sorted at a time; the sorted runs are then merged, which is far cheaper than sorting them."""

_DIGITS = re.compile(r"[0-9]+")
_LONGEST_NUMBER = 99


class SortKey(StrEnum):
    NAME = "name"
    SIZE = "size"
    TIME = "time"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key and its direction. Ties are ordered by ascending name."""

    key: SortKey = SortKey.NAME
    descending: bool = False

    def next(self) -> Order:
        """Return an order by the next key, in that key's usual direction."""
        keys = list(SortKey)
        key = keys[(keys.index(self.key) + 1) % len(keys)]
        return Order(key, descending=key in (SortKey.SIZE, SortKey.TIME))

    def reversed(self) -> Order:
        return Order(self.key, not self.descending)


BY_NAME = Order()


def name_key(name: str) -> str:
    """Return a natural sort key: ``part-2`` before ``part-10``, ignoring case."""
    return _DIGITS.sub(_counted, name.lower())


def _counted(match: re.Match[str]) -> str:
    digits = match.group().lstrip("0") or "0"
    return f"{min(len(digits), _LONGEST_NUMBER):02}{digits}"


def sort_steps(tree: FileTree, nodes: Sequence[int], order: Order) -> Steps[list[int]]:
    done = list(nodes)
    if order.key is not SortKey.NAME:
        done = yield from _sorted_by(done, lambda node: name_key(tree.names[node]), descending=False)
    return (yield from _sorted_by(done, _key_of(tree, order.key), descending=order.descending))


def _key_of(tree: FileTree, key: SortKey) -> Callable[[int], Any]:
    if key is SortKey.SIZE:
        return tree.sizes.__getitem__
    if key is SortKey.TIME:
        newest_s = tree.newest_s
        return newest_s.__getitem__
    if key is SortKey.TYPE:
        return lambda node: _type_key(tree, node)
    return lambda node: name_key(tree.names[node])


def _type_key(tree: FileTree, node: int) -> str | None:
    """Return a key that puts directories first; None for a file without a type."""
    kind = tree.type_of(node)
    return f"{tree.children[node] is None:d}{kind}" if kind else None


def _sorted_by(nodes: list[int], key_of: Callable[[int], Any], *, descending: bool) -> Steps[list[int]]:
    """Sort stably in either direction, unknown values last: compute keys, sort runs, then merge the runs."""
    keys: dict[int, Any] = {}
    size = len(nodes)
    for start in range(0, size, STEP_ITEMS):
        for node in nodes[start : start + STEP_ITEMS]:
            keys[node] = key_of(node)
        if size > STEP_ITEMS:
            yield start / size / 2
    if size > RUN_ITEMS:
        runs: list[int] = []
        for start in range(0, size, RUN_ITEMS):
            runs += ordered(nodes[start : start + RUN_ITEMS], keys.__getitem__, descending=descending)
            yield 0.5 + start / size / 2
        nodes = runs
    return ordered(nodes, keys.__getitem__, descending=descending)


_STEP_NAMES = 8 * STEP_ITEMS


class VisibleRows:
    """Visible nodes in order, ``nodes[row]``, with their directories opened and closed in place.

    With ``matches`` only kept nodes are shown. Methods ending in ``_steps`` change the rows only once
    they have run to completion; run one at a time. To preserve open directories across a refresh, save
    their paths (``open_paths``).
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
        return node in self.open_nodes

    def size_bytes(self, node: int) -> int:
        """Return the node's total size, counting only kept files if a filter is set."""
        return (self.matches.sizes if self.matches else self.tree.sizes)[node]

    def file_count(self, node: int) -> int:
        """Return the node's number of files, counting only kept files if a filter is set."""
        return (self.matches.file_counts if self.matches else self.tree.file_counts)[node]

    def share_of_parent(self, node: int) -> float:
        whole = self.size_bytes(self.tree.parents[node])
        return self.size_bytes(node) / whole if whole else 0.0

    def row_of(self, node: int) -> int | None:
        try:
            return self.nodes.index(node)
        except ValueError:
            return None

    def children_steps(self, node: int) -> Steps[list[int]]:
        """Return the children to show in order; sorts them only once."""
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
        """Open the directory at that row and return the number of rows inserted below it."""
        node = self.nodes[row]
        if not self.tree.is_directory(node) or node in self.open_nodes:
            return 0
        self.open_nodes.add(node)
        found = yield from self._flatten_steps(node)
        self.nodes[row + 1 : row + 1] = found
        return len(found)

    def close(self, row: int) -> int:
        """Close the directory at that row and return the number of rows removed."""
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
        """Rebuild all rows, optionally in another order, with these directories or all of them open too."""
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
        """Return the paths of the open directories, to reopen them in a newer tree."""
        return {self.tree.path(node) for node in self.open_nodes}

    def _open_by_path_steps(self, wanted: set[str]) -> Steps[None]:
        """Open directories by path from the top down, since a closed directory has no open descendants."""
        tree, cost = self.tree, 0
        waiting = [ROOT] if wanted else []
        while waiting:
            for child in tree.children[waiting.pop()] or ():
                if tree.children[child] is None:
                    continue
                if tree.path(child) in wanted:
                    self.open_nodes.add(child)
                    waiting.append(child)
                cost += tree.depths[child] + 1  # The cost of building a path.
                if cost > _STEP_NAMES:
                    cost = 0
                    yield 0.0

    def _flatten_steps(self, top: int) -> Steps[list[int]]:
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
