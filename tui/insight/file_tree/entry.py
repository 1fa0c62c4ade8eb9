"""One file or directory as some server lists it."""

from __future__ import annotations

from typing import NamedTuple

DIRECTORY_KINDS = frozenset({"directory", "dir", "folder"})


class FileEntry(NamedTuple):
    """A listed path: whatever the server sent, nothing cleaned.

    ``modified_s`` is epoch seconds, None where unknown. ``kind`` is the server's word (``file``,
    ``directory``, ``symlink`` …). ``size_bytes`` of a directory's own entry is not part of any total.
    """

    path: str
    size_bytes: int = 0
    modified_s: float | None = None
    kind: str = "file"
    permissions: str = ""

    @property
    def is_directory(self) -> bool:
        """Whether the server calls it a directory."""
        return self.kind.lower() in DIRECTORY_KINDS
