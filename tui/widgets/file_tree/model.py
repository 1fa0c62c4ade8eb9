"""Content of a tree of files: the files as filtered, sorted and opened. Made in a thread; no drawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tui.analysis.file_tree.rows import BY_NAME, Order, VisibleRows, filtered
from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree


@dataclass(frozen=True, slots=True, eq=False)
class ViewRequest:
    """The requested state of a tree; a new object for every change."""

    entries: Sequence[FileEntry] | None = None
    pattern: str = ""
    order: Order = BY_NAME


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A tree and its rows.

    Attributes:
        open_nodes: The directories that are open without a filter.
        node_at: The first node of every path.
    """

    tree: FileTree
    rows: VisibleRows
    open_nodes: Set[int]
    node_at: Mapping[str, int]

    def with_rows(self, rows: VisibleRows) -> Shown:
        """Return the tree with other directories open."""
        return replace(self, rows=rows, open_nodes=self.open_nodes if rows.matches else rows.open_nodes)


def arrange(request: ViewRequest, before: Shown | None) -> Shown | None:
    """Return the requested state; directories stay open, first of all the chain of single ones."""
    if request.entries is None:
        return None
    if before is not None and before.tree.entries is request.entries:
        tree, node_at, open_nodes = before.tree, before.node_at, before.open_nodes
    else:
        tree = FileTree(request.entries)
        node_at = tree.nodes_by_path()
        open_nodes = (
            _single_child_chain(tree)
            if before is None
            else nodes_at(node_at, map(before.tree.path, before.open_nodes))
        )
    rows = (
        before.rows if before is not None and before.tree is tree else VisibleRows(tree, order=request.order)
    )
    if rows.order != request.order:
        rows = VisibleRows(tree, order=request.order, matches=rows.matches, open_nodes=rows.open_nodes)
    if not request.pattern:
        return Shown(tree, rows.showing(open_nodes, None), open_nodes, node_at)
    if rows.matches is None or rows.matches.pattern != request.pattern:
        matches = filtered(tree, request.pattern)
        is_open = {node for node in range(1, len(tree)) if matches.kept[node] and tree.is_directory(node)}
        rows = rows.showing(is_open, matches)
    return Shown(tree, rows, open_nodes, node_at)


def nodes_at(node_at: Mapping[str, int], paths: Iterable[str]) -> set[int]:
    """Return the nodes with these paths; some may be gone."""
    return {node_at[path] for path in paths if path in node_at}


def _single_child_chain(tree: FileTree) -> set[int]:
    chain: set[int] = set()
    below = tree.children[ROOT] or []
    while len(below) == 1 and tree.is_directory(below[0]):
        chain.add(below[0])
        below = tree.children[below[0]] or []
    return chain
