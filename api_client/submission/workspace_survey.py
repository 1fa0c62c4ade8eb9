"""What lies in a workspace, and what of it an archive holds. Nothing is dropped without a word."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from api_client.errors import ArchiveError
from api_client.submission.ignore_rules import IGNORE_FILE, SURPRISING_RULES, IgnoreRules
from api_client.submission.workspace_layout import WorkspaceLayout


class ArchivedFile(NamedTuple):
    """A file of the plan: where it lies, its name in the archive, its bytes. A link has none."""

    path: Path
    name: str
    size_bytes: int


class DroppedEntry(NamedTuple):
    """Something that stays out, and why. The name of a folder ends with ``/``."""

    name: str
    reason: str


class _Folder(NamedTuple):
    """A folder still to be walked: where it lies, its name in the archive, the real paths above it."""

    path: str
    prefix: str
    above: frozenset[str]


class Survey:
    """Walks folders and sorts what it finds into ``files`` and ``dropped``.

    ``surprising``: names that a built-in rule drops although people write such things by hand.
    """

    def __init__(self, rules: IgnoreRules, layout: WorkspaceLayout) -> None:
        self._rules = rules
        self._layout = layout
        self._real_root = layout.root.resolve()
        self.files: list[ArchivedFile] = []
        self.dropped: list[DroppedEntry] = []
        self.surprising: list[str] = []
        self.warnings: list[str] = []

    def walk(self, folder: Path, prefix: str) -> None:
        """Take in a folder; ``prefix`` is its name in the archive, with a slash at its end, or empty."""
        waiting = [_Folder(str(folder), prefix, frozenset({os.path.realpath(folder)}))]
        while waiting:
            here = waiting.pop()
            for entry in self._entries(here):
                name = here.prefix + entry.name
                if not here.prefix and entry.name in self._layout.excluded:
                    self._drop(name + "/" * entry.is_dir(), "excluded by exclude_dirs")
                elif entry.is_symlink():
                    self._take_link(entry, name, here, waiting)
                elif entry.is_dir():
                    if self.is_kept(name, is_folder=True):
                        # Only links can lead back up.
                        real = {os.path.realpath(entry.path)} if self._layout.follows_links else set()
                        waiting.append(_Folder(entry.path, name + "/", here.above | real))
                elif self.is_kept(name, is_folder=False):
                    self._take_file(Path(entry.path), name, entry.stat())

    def is_kept(self, name: str, *, is_folder: bool) -> bool:
        """Whether no rule drops it; notes it if one does."""
        rule = self._rules.rule_against(name, is_folder=is_folder)
        if rule is None:
            return True
        shown = name + "/" * is_folder
        origin = "the built-in rule" if self._rules.is_built_in else f"the {IGNORE_FILE} rule"
        self._drop(shown, f"ignored by {origin} {rule}")
        if self._rules.is_built_in and rule in SURPRISING_RULES:
            self.surprising.append(shown)
        return False

    def _entries(self, folder: _Folder) -> list[os.DirEntry[str]]:
        prefix = folder.prefix
        try:
            with os.scandir(folder.path) as found:
                entries = list(found)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            if not prefix:
                raise ArchiveError(f"{folder.path} cannot be read: {reason}") from None
            self._drop(prefix, f"cannot be read: {reason}")
            self.warnings.append(f"{prefix} is not in the archive: it cannot be read ({reason})")
            return []
        if not entries and prefix:
            self._drop(prefix, "an empty folder, and archives hold files only")
        return entries

    def _take_link(self, entry: os.DirEntry[str], name: str, here: _Folder, waiting: list[_Folder]) -> None:
        """A link: followed in a workspace; in a plain folder kept if it leads to a file."""
        try:
            is_folder, found = entry.is_dir(), entry.stat()
        except OSError:
            if self.is_kept(name, is_folder=False):
                self._drop(name, "a link that leads to nothing")
            return
        # Where links are kept, one to a folder is the link's own name to the rules, as it is to git.
        if not self.is_kept(name, is_folder=is_folder):
            return
        real = os.path.realpath(entry.path)
        if self._layout.follows_links:
            if not is_folder:
                self._take_file(Path(real), name, found)
            elif real in here.above:
                self._drop(name, "a link to a folder that it lies in")
            else:
                waiting.append(_Folder(entry.path, name + "/", here.above | {real}))
        elif is_folder:
            self._drop(name, "a link to a folder, which archives do not follow")
        elif not stat.S_ISREG(found.st_mode):
            self._drop(name, "not a plain file")
        else:
            self.files.append(ArchivedFile(Path(entry.path), name, 0))
            target = Path(entry.path).readlink()
            if target.is_absolute() or not Path(real).is_relative_to(self._real_root):
                self.warnings.append(
                    f"{name} is a link to {target}: it is kept as a link, and leads out of the archive"
                )

    def _take_file(self, path: Path, name: str, found: os.stat_result) -> None:
        if stat.S_ISREG(found.st_mode):
            self.files.append(ArchivedFile(path, name, found.st_size))
        else:
            self._drop(name, "not a plain file")

    def _drop(self, name: str, reason: str) -> None:
        self.dropped.append(DroppedEntry(name, reason))
