"""The visible rows of a file tree: filtered, sorted, with directories opened and closed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tui.analysis.file_tree.tree import ROOT, FileTree
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
    lowered = pattern.lower()
    return lambda text: lowered in text.lower()


def filtered(tree: FileTree, pattern: str) -> Matches:
    """Apply a pattern.

    A pattern with a slash is matched against listed paths, others against names.
    """
    matches = compile_pattern(pattern)
    size = len(tree)
    hits, shown = bytearray(size), bytearray(size)
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
            hits[node] = shown[node] = 1
    for node in range(size - 1, ROOT, -1):
        parent = tree.parents[node]
        if shown[node]:
            shown[parent] = 1
        else:
            sizes[node] = counts[node] = 0
    _add_up(tree, sizes, counts)
    return Matches(pattern=pattern, kept=shown, hits=hits, sizes=sizes, file_counts=counts)


def _add_up(tree: FileTree, sizes: list[int], counts: list[int]) -> None:
    size = len(tree)
    for node in range(size):
        if tree.children[node] is not None:
            sizes[node] = counts[node] = 0
    for node in range(size - 1, ROOT, -1):
        parent = tree.parents[node]
        sizes[parent] += sizes[node]
        counts[parent] += counts[node]


RUN_ITEMS = 4096
"""Items sorted at a time: a sort stops all threads, and merging sorted runs is far faster than sorting."""

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


def in_order(tree: FileTree, nodes: Sequence[int], order: Order) -> list[int]:
    done = list(nodes)
    if order.key is not SortKey.NAME:
        done = _sorted_by(done, lambda node: name_key(tree.names[node]), descending=False)
    return _sorted_by(done, _key_of(tree, order.key), descending=order.descending)


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


def _sorted_by(nodes: list[int], key_of: Callable[[int], Any], *, descending: bool) -> list[int]:
    """Sort stably in either direction, unknown values last: compute keys, sort runs, then merge the runs."""
    keys = {node: key_of(node) for node in nodes}
    if len(nodes) > RUN_ITEMS:
        starts = range(0, len(nodes), RUN_ITEMS)
        parts = [nodes[start : start + RUN_ITEMS] for start in starts]
        nodes = [node for part in parts for node in ordered(part, keys.__getitem__, descending=descending)]
    return ordered(nodes, keys.__getitem__, descending=descending)


class VisibleRows:
    """Visible nodes in order, ``nodes[row]``, with their directories opened and closed in place.

    With ``matches`` only kept nodes are shown. To preserve open directories across a refresh, save their
    paths (``open_paths``).
    """

    def __init__(
        self,
        tree: FileTree,
        *,
        order: Order = BY_NAME,
        matches: Matches | None = None,
        open_nodes: Iterable[int] = (),
    ) -> None:
        self.tree = tree
        self.order = order
        self.matches = matches
        self.open_nodes = set(open_nodes)
        self._sorted: dict[int, list[int]] = {}
        self.nodes = self._flat(ROOT)

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
        parent_bytes = self.size_bytes(self.tree.parents[node])
        return self.size_bytes(node) / parent_bytes if parent_bytes else 0.0

    def row_of(self, node: int) -> int | None:
        try:
            return self.nodes.index(node)
        except ValueError:
            return None

    def _children(self, node: int) -> list[int]:
        """Return the children to show in order; sorts them only once."""
        cached = self._sorted.get(node)
        if cached is None:
            below: Iterable[int] = self.tree.children[node] or ()
            if self.matches is not None:
                shown = self.matches.kept
                below = [child for child in below if shown[child]]
            cached = self._sorted[node] = in_order(self.tree, list(below), self.order)
        return cached

    def toggle(self, node: int) -> None:
        """Open or close the directory of a row; nothing if it has no row."""
        row = self.row_of(node)
        if row is None:
            return
        if node in self.open_nodes:
            self.close(row)
        elif self.tree.is_directory(node):
            self.open_nodes.add(node)
            self.nodes[row + 1 : row + 1] = self._flat(node)

    def toggle_below(self, top: int) -> None:
        """Open a directory and every one below it, or close them if all of them are open."""
        shown = self.matches.kept if self.matches is not None else None
        below, waiting = set[int](), [top]
        while waiting:
            node = waiting.pop()
            children = self.tree.children[node]
            if children is not None and (shown is None or shown[node]):
                below.add(node)
                waiting += children
        self.open_nodes = self.open_nodes - below if self.open_nodes >= below else self.open_nodes | below
        self.nodes = self._flat(ROOT)

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

    def open_paths(self) -> set[str]:
        """Return the paths of the open directories, to reopen them in a newer tree."""
        return {self.tree.path(node) for node in self.open_nodes}

    def _flat(self, top: int) -> list[int]:
        nodes: list[int] = []
        waiting = self._children(top)[::-1]
        while waiting:
            node = waiting.pop()
            nodes.append(node)
            if node in self.open_nodes:
                waiting += reversed(self._children(node))
        return nodes


def nodes_at(tree: FileTree, paths: Collection[str]) -> list[int]:
    """Return the nodes with these paths."""
    return [node for node in range(1, len(tree)) if tree.path(node) in paths] if paths else []
