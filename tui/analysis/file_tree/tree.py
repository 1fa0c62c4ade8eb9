"""A tree of files built from listed paths, with the totals of every directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

DIRECTORY_KINDS = frozenset({"directory", "dir", "folder"})


class FileEntry(NamedTuple):
    """A listed path exactly as the server sent it, not sanitized.

    ``modified_s`` is epoch seconds, None if unknown. ``kind`` is the server's word (``file``,
    ``directory``, ``symlink`` …). ``size_bytes`` of a directory's own entry is not part of any total.
    """

    path: str
    size_bytes: int = 0
    modified_s: float | None = None
    kind: str = "file"
    permissions: str = ""

    @property
    def is_directory(self) -> bool:
        return self.kind.lower() in DIRECTORY_KINDS


ROOT = 0
"""The root node; it has no name and no row."""

NO_ENTRY = -1
_LONGEST_SUFFIX = 16


@dataclass(frozen=True, slots=True)
class FileTree:
    """A built tree. Nodes are numbers; a parent's is always smaller than its children's.

    ``names`` are the server's own and not sanitized. For a directory, ``sizes`` (bytes), ``file_counts``
    and ``newest_s`` (epoch seconds, None where unknown) are totals of the files below it. ``children`` is
    None for nodes that are not directories. ``entries`` are the records the tree was built from,
    ``entry_of`` a node's index in them or ``NO_ENTRY`` for directories that only occur in other paths.
    """

    entries: Sequence[FileEntry]
    names: list[str]
    parents: list[int]
    depths: list[int]
    sizes: list[int]
    file_counts: list[int]
    newest_s: list[float | None]
    entry_of: list[int]
    children: list[list[int] | None]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def total_bytes(self) -> int:
        return self.sizes[ROOT]

    @property
    def file_count(self) -> int:
        return self.file_counts[ROOT]

    def is_directory(self, node: int) -> bool:
        return self.children[node] is not None

    def entry(self, node: int) -> FileEntry | None:
        """Return the listed entry of the node, None for a directory that was not listed."""
        index = self.entry_of[node]
        return None if index == NO_ENTRY else self.entries[index]

    def path(self, node: int) -> str:
        """Return the path as the server wrote it; for an unlisted directory, the names leading to it."""
        entry = self.entry(node)
        if entry is not None:
            return entry.path
        names = []
        while node != ROOT:
            names.append(self.names[node])
            node = self.parents[node]
        return "/".join(reversed(names))

    def type_of(self, node: int) -> str:
        """Return ``directory``, the server's kind if it is not a plain file, or else the file extension."""
        if self.children[node] is not None:
            return "directory"
        entry = self.entry(node)
        if entry is not None and entry.kind.lower() not in ("file", ""):
            return entry.kind
        stem, dot, suffix = self.names[node].rpartition(".")
        return suffix.lower() if dot and stem and suffix.isalnum() and len(suffix) <= _LONGEST_SUFFIX else ""

    def share_of_total(self, node: int) -> float:
        return self.sizes[node] / self.total_bytes if self.total_bytes else 0.0

    def ancestors(self, node: int) -> list[int]:
        """Return the directories leading to the node, nearest first, without the root."""
        ancestors = []
        node = self.parents[node]
        while node > ROOT:
            ancestors.append(node)
            node = self.parents[node]
        return ancestors

    def files_below(self, node: int) -> list[int]:
        """Return all files below a directory recursively, or the file itself; in no particular order."""
        files, waiting = [], [node]
        while waiting:
            current = waiting.pop()
            below = self.children[current]
            if below is None:
                files.append(current)
            else:
                waiting.extend(below)
        return files

    def node_of(self, path: str) -> int | None:
        """Return the first node with that path, None if it is gone. Used to restore positions."""
        # A scan of all paths: 100,000 of them take some 20 ms, and it runs once per refresh.
        for node in range(1, len(self.names)):
            if path.endswith(self.names[node]) and self.path(node) == path:
                return node
        return None

    def largest_directories(self, limit: int) -> list[int]:
        """Return the largest directories, leaving out any whose bytes are nearly all in one subdirectory.

        That subdirectory is listed instead.
        """
        candidates = []
        for node in range(1, len(self.names)):
            below = self.children[node]
            if below is None or not self.sizes[node]:
                continue
            if not any(self.children[child] is not None and self._fills(child, node) for child in below):
                candidates.append(node)
        candidates.sort(key=lambda node: -self.sizes[node])
        return candidates[:limit]

    def _fills(self, child: int, node: int) -> bool:
        return self.sizes[child] * 10 >= self.sizes[node] * 9


NAMELESS = ""
_IGNORED = ("", ".")


class TreeBuilder:
    """Adds listed paths to a tree one at a time.

    A path is data: its parts are plain names, including ``..``, and only lead down the tree. Empty parts
    and ``.`` are dropped. A path listed twice, or as both a file and a directory, yields two nodes.
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
        entry = self._entries[place]
        folder, _, name = entry.path.rpartition("/")
        if entry.is_directory:
            node = self._directory(entry.path)
            if node != ROOT and self._entry_of[node] == NO_ENTRY:
                self._entry_of[node] = place
            return
        if name in _IGNORED:  # No file can have this name, but it was listed, so show it.
            name = entry.path
        parent = self._by_path.get(folder)
        self._append(self._directory(folder) if parent is None else parent, name, place, None)

    def _directory(self, path: str) -> int:
        existing = self._by_path.get(path)
        if existing is not None:
            return existing
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

    def tree(self) -> FileTree:
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


def build(entries: Sequence[FileEntry]) -> FileTree:
    """Build the tree of these files; ``entries`` must not change afterwards."""
    builder = TreeBuilder(entries)
    for index in range(len(entries)):
        builder.add(index)
    return builder.tree()
