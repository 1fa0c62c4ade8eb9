"""The visible rows of a file tree: filtered, sorted, with expanded and collapsed directories."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import Any

from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree
from tui.analysis.ordering import ordered


@dataclass(frozen=True, slots=True)
class Matches:
    """The result of a filter. Each sequence has an item per node."""

    pattern: str
    is_kept: bytearray
    """1 for nodes to show: matches, the directories above, and everything in matching directories."""
    hits: bytearray
    """1 for matches, and for everything in matching directories."""
    sizes: list[int]
    """Total bytes of the kept files in each directory."""
    file_counts: list[int]
    """Number of kept files in each directory."""


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern that matches names, ignoring case: a glob if it has ``* ? [``, else a substring."""
    if any(sign in pattern for sign in "*?["):
        expression = re.compile(fnmatch.translate(pattern), re.IGNORECASE)
        return lambda text: expression.match(text) is not None
    lowered = pattern.lower()
    return lambda text: lowered in text.lower()


def filtered(tree: FileTree, pattern: str) -> Matches:
    """Match a pattern (see ``compile_pattern``) against paths if it contains a slash, else against names."""
    matches = compile_pattern(pattern)
    by_path = "/" in pattern
    hits, is_kept = bytearray(len(tree)), bytearray(len(tree))
    for node in range(1, len(tree)):
        # Unlisted directories match only through their files, since building their paths is slow.
        entry = tree.entry(node) if by_path else None
        text = (entry.path if entry else "") if by_path else tree.names[node]
        hits[node] = hits[tree.parents[node]] or matches(text)
    for node in range(len(tree) - 1, ROOT, -1):
        if hits[node] or is_kept[node]:
            is_kept[node] = is_kept[tree.parents[node]] = 1
    is_kept_file = [is_kept[node] and not tree.is_directory(node) for node in range(len(tree))]
    sizes = tree.totals([size if keeps else 0 for size, keeps in zip(tree.sizes, is_kept_file, strict=True)])
    return Matches(pattern, is_kept, hits, sizes, tree.totals([int(keeps) for keeps in is_kept_file]))


SORT_CHUNK = 4096
"""Items sorted at a time, since a sort holds the GIL until it ends. Merging sorted chunks is far faster."""

_DIGITS = re.compile(r"[0-9]+")


class SortKey(StrEnum):
    NAME = "name"
    SIZE = "size"
    TIME = "time"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key and its direction. Equal items are sorted by name, ascending."""

    key: SortKey = SortKey.NAME
    descending: bool = False

    def next(self) -> Order:
        """Return the order by the next key: ascending for names and types, descending for sizes and times."""
        keys = list(SortKey)
        key = keys[(keys.index(self.key) + 1) % len(keys)]
        return Order(key, descending=key in (SortKey.SIZE, SortKey.TIME))

    def reversed(self) -> Order:
        return Order(self.key, not self.descending)


BY_NAME = Order()


def name_key(name: str) -> str:
    """Return a sort key, ignoring case, that puts ``part-2`` before ``part-10``."""
    return _DIGITS.sub(_with_digit_count, name.lower())


def _with_digit_count(match: re.Match[str]) -> str:
    digits = match.group().lstrip("0") or "0"
    return f"{min(len(digits), 99):02}{digits}"


def sorted_nodes(tree: FileTree, nodes: Sequence[int], order: Order) -> list[int]:
    is_by_name = order.key is SortKey.NAME
    by_name = _sorted_by(
        nodes, lambda node: name_key(tree.names[node]), descending=is_by_name and order.descending
    )
    if is_by_name:
        return by_name
    keys: dict[SortKey, Callable[[int], Any]] = {
        SortKey.SIZE: tree.sizes.__getitem__,
        SortKey.TIME: tree.newest_s.__getitem__,
        SortKey.TYPE: partial(_type_key, tree),
    }
    return _sorted_by(by_name, keys[order.key], descending=order.descending)


def _type_key(tree: FileTree, node: int) -> str | None:
    """Return a key that puts directories first; None for a file without a type."""
    kind = tree.type_of(node)
    return f"{tree.children[node] is None:d}{kind}" if kind else None


def _sorted_by(nodes: Sequence[int], key_of: Callable[[int], Any], *, descending: bool) -> list[int]:
    """Sort stably by key, nodes without a key last. Sorts chunks and merges them (see ``SORT_CHUNK``)."""
    key = {node: key_of(node) for node in nodes}.__getitem__
    chunks = [
        ordered(nodes[start : start + SORT_CHUNK], key, descending=descending)
        for start in range(0, len(nodes), SORT_CHUNK)
    ]
    return ordered(chain.from_iterable(chunks), key, descending=descending)


@dataclass(eq=False)
class VisibleRows:
    """The visible rows of a tree. Immutable, so that a thread can build the next rows.

    Attributes:
        matches: The result of the filter, of which only kept nodes are visible; None without a filter.
        open_nodes: The open directories.
        open_unfiltered: The directories to open when the filter is cleared.
        sorted_children: The children of each directory opened so far, in ``order``, as a cache.
        nodes: The visible node of each row.
    """

    tree: FileTree
    order: Order = BY_NAME
    matches: Matches | None = None
    open_nodes: Set[int] = frozenset()
    open_unfiltered: Set[int] = frozenset()
    sorted_children: dict[int, list[int]] = field(default_factory=dict)
    nodes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = []
        stack = self._children(ROOT)[::-1]
        while stack:
            node = stack.pop()
            self.nodes.append(node)
            if node in self.open_nodes:
                stack += reversed(self._children(node))

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
        """Return the visible children in order; they are sorted only once."""
        if node not in self.sorted_children:
            self.sorted_children[node] = sorted_nodes(self.tree, self.tree.children[node] or (), self.order)
        children = self.sorted_children[node]
        return (
            children if self.matches is None else [child for child in children if self.matches.is_kept[child]]
        )

    def _with_open(self, open_nodes: Set[int]) -> VisibleRows:
        open_unfiltered = open_nodes if self.matches is None else self.open_unfiltered
        return replace(self, open_nodes=open_nodes, open_unfiltered=open_unfiltered)

    def toggled(self, node: int) -> VisibleRows:
        """Return the rows with a directory opened or closed."""
        return self._with_open(self.open_nodes ^ {node})

    def toggled_below(self, directory: int) -> VisibleRows:
        """Return the rows with a directory and all directories below opened; closed if all are open."""
        directories, stack = set[int](), [directory]
        while stack:
            node = stack.pop()
            if self.tree.is_directory(node):
                directories.add(node)
                stack += self._children(node)
        all_are_open = self.open_nodes >= directories
        return self._with_open(
            self.open_nodes - directories if all_are_open else self.open_nodes | directories
        )


def arranged(
    entries: Sequence[FileEntry], pattern: str, order: Order, old_rows: VisibleRows | None
) -> VisibleRows:
    """Return the rows of these files; the directories that are open in ``old_rows`` stay open.

    Without ``old_rows``, open each directory from the root down that has no siblings.
    """
    if old_rows is not None and old_rows.tree.entries is entries:
        tree, open_unfiltered, matches, open_nodes = (
            old_rows.tree,
            old_rows.open_unfiltered,
            old_rows.matches,
            old_rows.open_nodes,
        )
        sorted_children = old_rows.sorted_children if old_rows.order == order else {}
    else:
        tree, matches, sorted_children = FileTree(entries), None, {}
        open_nodes = open_unfiltered = (
            _single_child_chain(tree)
            if old_rows is None
            else tree.nodes_at(map(old_rows.tree.path, old_rows.open_unfiltered))
        )
    if not pattern:
        matches, open_nodes = None, open_unfiltered
    elif matches is None or matches.pattern != pattern:
        matches = filtered(tree, pattern)
        open_nodes = {
            node for node in range(1, len(tree)) if matches.is_kept[node] and tree.is_directory(node)
        }
    return VisibleRows(tree, order, matches, open_nodes, open_unfiltered, sorted_children)


def _single_child_chain(tree: FileTree) -> set[int]:
    open_nodes: set[int] = set()
    children = tree.children[ROOT] or []
    while len(children) == 1 and tree.is_directory(children[0]):
        open_nodes.add(children[0])
        children = tree.children[children[0]] or []
    return open_nodes
