"""From listed paths to a tree: one look at every path, one at every node for the totals."""

from __future__ import annotations

from collections.abc import Sequence

from tui.insight.file_tree.entry import FileEntry
from tui.insight.file_tree.steps import STEP_ITEMS, Steps, finish
from tui.insight.file_tree.tree import NO_ENTRY, ROOT, FileTree

NAMELESS = ""
_IGNORED = ("", ".")


class TreeBuilder:
    """Adds paths one after the other.

    A path is data: its parts are names, ``..`` included, and lead nowhere but down the tree. Empty parts and
    ``.`` are left out. A path listed twice, or as a file and as a directory, gives two nodes.
    """

    def __init__(self, entries: Sequence[FileEntry]) -> None:
        self._entries = entries
        self._names = [NAMELESS]
        self._parents = [ROOT]
        self._depths = [-1]
        self._entry_of = [NO_ENTRY]
        self._children: list[list[int] | None] = [[]]
        self._by_name: dict[tuple[int, str], int] = {}
        self._by_path: dict[str, int] = {"": ROOT}

    def add(self, place: int) -> None:
        """Put the entry at that place of the list into the tree."""
        entry = self._entries[place]
        folder, _, name = entry.path.rpartition("/")
        if entry.is_directory:
            node = self._directory(entry.path)
            if node != ROOT and self._entry_of[node] == NO_ENTRY:
                self._entry_of[node] = place
            return
        if name in _IGNORED:  # no file can be called so; it is listed all the same, and shown
            name = entry.path
        parent = self._by_path.get(folder)
        self._append(self._directory(folder) if parent is None else parent, name, place, None)

    def _directory(self, path: str) -> int:
        known = self._by_path.get(path)
        if known is not None:
            return known
        node = ROOT
        for name in path.split("/"):
            if name in _IGNORED:
                continue
            key = (node, name)
            child = self._by_name.get(key)
            if child is None:
                child = self._append(node, name, NO_ENTRY, [])
                self._by_name[key] = child
            node = child
        self._by_path[path] = node
        return node

    def _append(self, parent: int, name: str, place: int, children: list[int] | None) -> int:
        node = len(self._names)
        self._names.append(name)
        self._parents.append(parent)
        self._depths.append(self._depths[parent] + 1)
        self._entry_of.append(place)
        self._children.append(children)
        siblings = self._children[parent]
        assert siblings is not None
        siblings.append(node)
        return node

    def totals(self) -> Steps[FileTree]:
        """Add everything up, children before parents."""
        size = len(self._names)
        sizes, counts = [0] * size, [0] * size
        newest: list[float | None] = [None] * size
        entries, entry_of, parents, children = self._entries, self._entry_of, self._parents, self._children
        for node in range(size - 1, ROOT - 1, -1):
            if children[node] is None:
                entry = entries[entry_of[node]]
                sizes[node], counts[node], newest[node] = max(0, entry.size_bytes), 1, entry.modified_s
            if node != ROOT:
                parent = parents[node]
                sizes[parent] += sizes[node]
                counts[parent] += counts[node]
                time_s, other_s = newest[node], newest[parent]
                if time_s is not None and (other_s is None or time_s > other_s):
                    newest[parent] = time_s
            if node % STEP_ITEMS == 0:
                yield 1 - node / size
        return FileTree(
            entries=entries,
            names=self._names,
            parents=parents,
            depths=self._depths,
            sizes=sizes,
            file_counts=counts,
            newest_s=newest,
            entry_of=entry_of,
            children=children,
        )


def build_steps(entries: Sequence[FileEntry]) -> Steps[FileTree]:
    """The tree of these files, in steps; ``entries`` must not change afterwards."""
    builder = TreeBuilder(entries)
    half = 2 * max(1, len(entries))
    for place in range(len(entries)):
        builder.add(place)
        if place % STEP_ITEMS == 0:
            yield place / half
    totals = builder.totals()
    while True:
        try:
            yield 0.5 + next(totals) / 2
        except StopIteration as end:
            tree: FileTree = end.value
            return tree


def build(entries: Sequence[FileEntry]) -> FileTree:
    """The tree of these files, at once."""
    return finish(build_steps(entries))
