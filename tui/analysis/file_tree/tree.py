"""A tree of files, built from listed paths, with total sizes and file counts of its directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple


class FileEntry(NamedTuple):
    """A path that the server lists, not sanitized.

    ``modified_s`` is in epoch seconds, None if unknown. ``kind`` is the server's type (``file``,
    ``directory``, ``symlink`` …). The ``size_bytes`` of a directory are not part of any total.
    """

    path: str
    size_bytes: int = 0
    modified_s: float | None = None
    kind: str = "file"
    permissions: str = ""

    @property
    def is_directory(self) -> bool:
        return self.kind.lower() in {"directory", "dir", "folder"}


ROOT = 0
"""The root node; it has no name and no row."""

NO_ENTRY = -1
_IGNORED_NAMES = ("", ".")


class FileTree:
    """A tree of files. Nodes are numbers; the number of a parent is smaller than those of its children.

    Paths are not resolved: ``..`` is a name like any other. Empty names and ``.`` are dropped. The last name
    of a very deep directory is the rest of its path. A file listed twice, or a path listed both as a
    file and as a directory, has two nodes.

    Attributes:
        entries: The listed paths from which the tree was built; they must not change.
        names: The names of nodes, not sanitized.
        entry_indexes: A node's index in ``entries``; ``NO_ENTRY`` for a directory that is not listed itself.
        children: None for nodes that are not directories.
        sizes: Bytes; for a directory, the total of the files below it.
        file_counts: For a directory, the number of files below it.
        newest_s: Epoch seconds, None where unknown; for a directory, of the newest file below it.
    """

    def __init__(self, entries: Sequence[FileEntry]) -> None:
        self.entries = entries
        self.names = [""]
        self.parents = [ROOT]
        self.depths = [-1]
        self.entry_indexes = [NO_ENTRY]
        self.children: list[list[int] | None] = [[]]
        self._directories: dict[str, int] = {"": ROOT}
        self._by_name: dict[tuple[int, str], int] = {}
        for index in range(len(entries)):
            self._add(index)
        del self._directories, self._by_name  # only needed to build the tree; a seventh of its memory
        files = [
            entries[index] if children is None else None
            for index, children in zip(self.entry_indexes, self.children, strict=True)
        ]
        self.sizes = self.totals([max(0, file.size_bytes) if file else 0 for file in files])
        self.file_counts = self.totals([1 if file else 0 for file in files])
        self.newest_s = self._newest([file.modified_s if file else None for file in files])

    def _add(self, index: int) -> None:
        entry = self.entries[index]
        folder, _, name = entry.path.rpartition("/")
        if entry.is_directory:
            node = self._directory(entry.path)
            if node != ROOT and self.entry_indexes[node] == NO_ENTRY:
                self.entry_indexes[node] = index
            return
        if name in _IGNORED_NAMES:  # No file can have this name, but it is listed, so show its path.
            name = entry.path
        self._append(self._directory(folder), name, index, None)

    def _directory(self, path: str) -> int:
        existing = self._directories.get(path)
        if existing is not None:
            return existing
        node = ROOT
        # each unlisted directory needs a node, so paths of a huge tree are not split, which saves memory
        for name in path.split("/", 64 if len(self.names) < 250_000 else 0):
            if name not in _IGNORED_NAMES:
                key = (node, name)
                if key not in self._by_name:
                    self._by_name[key] = self._append(node, name, NO_ENTRY, [])
                node = self._by_name[key]
        self._directories[path] = node
        return node

    def _append(self, parent: int, name: str, index: int, children: list[int] | None) -> int:
        node = len(self.names)
        self.names.append(name)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        self.entry_indexes.append(index)
        self.children.append(children)
        siblings = self.children[parent]
        assert siblings is not None
        siblings.append(node)
        return node

    def totals(self, values: list[int]) -> list[int]:
        """Add the value of each file to all directories above it, in place."""
        for node in range(len(values) - 1, ROOT, -1):
            values[self.parents[node]] += values[node]
        return values

    def _newest(self, times_s: list[float | None]) -> list[float | None]:
        for node in range(len(times_s) - 1, ROOT, -1):
            time_s, parent_s = times_s[node], times_s[self.parents[node]]
            if time_s is not None and (parent_s is None or time_s > parent_s):
                times_s[self.parents[node]] = time_s
        return times_s

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
        """Return the listed entry of the node; None for a directory that is not listed."""
        index = self.entry_indexes[node]
        return None if index == NO_ENTRY else self.entries[index]

    def path(self, node: int) -> str:
        """Return the path as listed; for an unlisted directory, its name after those of its ancestors."""
        entry = self.entry(node)
        if entry is not None:
            return entry.path
        names = []
        while node != ROOT:
            names.append(self.names[node])
            node = self.parents[node]
        return "/".join(reversed(names))

    def type_of(self, node: int) -> str:
        """Return ``directory``, the server's type unless that is ``file``, or else the file extension."""
        if self.children[node] is not None:
            return "directory"
        entry = self.entry(node)
        if entry is not None and entry.kind.lower() not in ("file", ""):
            return entry.kind
        stem, dot, suffix = self.names[node].rpartition(".")
        return suffix.lower() if dot and stem and suffix.isalnum() and len(suffix) <= 16 else ""

    def share_of_total(self, node: int) -> float:
        return self.sizes[node] / self.total_bytes if self.total_bytes else 0.0

    def ancestors(self, node: int) -> list[int]:
        """Return the directories above the node, nearest first, without the root."""
        ancestors = []
        node = self.parents[node]
        while node > ROOT:
            ancestors.append(node)
            node = self.parents[node]
        return ancestors

    def files_below(self, node: int) -> list[int]:
        """Return all files below a directory, at any depth, or the file itself; in no particular order."""
        files, stack = [], [node]
        while stack:
            current = stack.pop()
            children = self.children[current]
            if children is None:
                files.append(current)
            else:
                stack.extend(children)
        return files

    @cached_property
    def node_at(self) -> dict[str, int]:
        """The node of each path; of two nodes with the same path, the first."""
        return {self.path(node): node for node in range(len(self) - 1, ROOT, -1)}

    def nodes_at(self, paths: Iterable[str]) -> set[int]:
        """Return the nodes with these paths; unknown paths are ignored."""
        return {self.node_at[path] for path in paths if path in self.node_at}

    def largest_directories(self, limit: int) -> list[int]:
        """Return the largest directories.

        If nearly all bytes of a directory are in one subdirectory, only the subdirectory is returned.
        """
        candidates = []
        for node in range(1, len(self.names)):
            children = self.children[node]
            if children is None or not self.sizes[node]:
                continue
            nearly_all = self.sizes[node] * 9
            if not any(
                self.children[child] is not None and self.sizes[child] * 10 >= nearly_all
                for child in children
            ):
                candidates.append(node)
        candidates.sort(key=lambda node: -self.sizes[node])
        return candidates[:limit]
