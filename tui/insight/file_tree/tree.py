"""The tree itself: parallel lists, a node being its place in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.insight.file_tree.entry import FileEntry

ROOT = 0
"""The node above all others; it has no name and no row."""

NO_ENTRY = -1
_LONGEST_SUFFIX = 16


@dataclass(frozen=True, slots=True)
class FileTree:
    """A built tree. Nodes are numbers; a parent's is always smaller than its children's.

    ``names`` are the server's own and not inert. ``sizes`` (bytes), ``file_counts`` and ``newest_s`` (epoch
    seconds, None where unknown) of a directory are totals of the files below it. ``children`` is None for
    what is not a directory. ``entries`` are the records it was built from, ``entry_of`` a node's place in
    them or ``NO_ENTRY`` for directories that only occur in other paths.
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
        """How many nodes there are, the root included."""
        return len(self.names)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was listed."""
        return len(self.names) == 1

    @property
    def total_bytes(self) -> int:
        """Bytes of all files."""
        return self.sizes[ROOT]

    @property
    def file_count(self) -> int:
        """How many files there are, directories not counted."""
        return self.file_counts[ROOT]

    def is_directory(self, node: int) -> bool:
        """Whether the node can hold others."""
        return self.children[node] is not None

    def entry(self, node: int) -> FileEntry | None:
        """What was listed for the node, if it was."""
        place = self.entry_of[node]
        return None if place == NO_ENTRY else self.entries[place]

    def path(self, node: int) -> str:
        """The path as the server wrote it; of an unlisted directory, the names that lead to it."""
        entry = self.entry(node)
        if entry is not None:
            return entry.path
        names = []
        while node != ROOT:
            names.append(self.names[node])
            node = self.parents[node]
        return "/".join(reversed(names))

    def type_of(self, node: int) -> str:
        """``directory``, what the server calls a thing that is no plain file, or else the name's ending."""
        if self.children[node] is not None:
            return "directory"
        entry = self.entry(node)
        if entry is not None and entry.kind.lower() not in ("file", ""):
            return entry.kind
        stem, dot, suffix = self.names[node].rpartition(".")
        return suffix.lower() if dot and stem and suffix.isalnum() and len(suffix) <= _LONGEST_SUFFIX else ""

    def share_of_parent(self, node: int) -> float:
        """Its part of its directory's bytes, from 0 to 1."""
        whole = self.sizes[self.parents[node]]
        return self.sizes[node] / whole if whole else 0.0

    def share_of_total(self, node: int) -> float:
        """Its part of all bytes, from 0 to 1."""
        return self.sizes[node] / self.total_bytes if self.total_bytes else 0.0

    def ancestors(self, node: int) -> list[int]:
        """The directories that lead to the node, the nearest first, without the root."""
        found = []
        node = self.parents[node]
        while node > ROOT:
            found.append(node)
            node = self.parents[node]
        return found

    def files_below(self, node: int) -> list[int]:
        """All files of a directory and of those in it, or the file itself; in no particular order."""
        found, waiting = [], [node]
        while waiting:
            each = waiting.pop()
            below = self.children[each]
            if below is None:
                found.append(each)
            else:
                waiting.extend(below)
        return found

    def node_of(self, path: str) -> int | None:
        """The first node of that path (as ``path`` gives it), to find one's place again; None if gone."""
        # A look through all paths: 100,000 of them take some 20 ms, and it is asked for once a refresh.
        for node in range(1, len(self.names)):
            if path.endswith(self.names[node]) and self.path(node) == path:
                return node
        return None

    def largest_directories(self, limit: int) -> list[int]:
        """Where the room goes: directories that hold most, none of which is merely another's only content.

        A directory whose bytes nearly all lie in one directory below it is left out for that one.
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
