"""Content of a tree of files: the files as filtered, sorted and opened. Made in a thread; no drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.analysis.file_tree.rows import BY_NAME, Order, VisibleRows, filtered, nodes_at
from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree, build


@dataclass(frozen=True, slots=True, eq=False)
class ViewRequest:
    """The requested state of a tree; a new object for every change."""

    entries: Sequence[FileEntry] | None = None
    pattern: str = ""
    order: Order = BY_NAME


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A tree and its rows; ``plain`` are the rows without a filter, which keep their open directories."""

    tree: FileTree
    plain: VisibleRows
    rows: VisibleRows


def arrange(request: ViewRequest, before: Shown | None) -> Shown | None:
    """Return the requested state; directories stay open, first of all the chain of single ones."""
    if request.entries is None:
        return None
    if before is None or before.tree.entries is not request.entries:
        tree = build(request.entries)
        is_open = _single_child_chain(tree) if before is None else nodes_at(tree, before.plain.open_paths())
        plain = VisibleRows(tree, order=request.order, open_nodes=is_open)
    else:
        tree, plain = before.tree, before.plain
    if plain.order != request.order:
        plain = VisibleRows(tree, order=request.order, open_nodes=plain.open_nodes)
    if not request.pattern:
        return Shown(tree, plain, plain)
    rows = before.rows if before is not None and before.tree is tree else plain
    matches, open_nodes = rows.matches, rows.open_nodes
    if matches is None or matches.pattern != request.pattern:
        matches = filtered(tree, request.pattern)
        open_nodes = {node for node in range(1, len(tree)) if matches.kept[node] and tree.is_directory(node)}
    elif rows.order == request.order:
        return Shown(tree, plain, rows)
    rows = VisibleRows(tree, order=request.order, matches=matches, open_nodes=open_nodes)
    return Shown(tree, plain, rows)


def _single_child_chain(tree: FileTree) -> list[int]:
    chain: list[int] = []
    node = ROOT
    while True:
        below = tree.children[node] or []
        if len(below) != 1 or not tree.is_directory(below[0]):
            return chain
        node = below[0]
        chain.append(node)
