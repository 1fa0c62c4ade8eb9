"""Files on their way to a browser: where the dashboard is a page, what is saved becomes a download there."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 120


class Outbox:
    """A private folder for them, made when it is first needed, gone when it is closed."""

    def __init__(self) -> None:
        self._root: Path | None = None

    def folder(self) -> Path:
        """A new empty folder in it."""
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="bt-tui-out-"))  # mode 0700
        return Path(tempfile.mkdtemp(dir=self._root))

    def place(self, name: str) -> Path:
        """A path of that name in a new folder; nothing of the name leads elsewhere."""
        return self.folder() / safe_name(name)

    def forget(self, path: Path) -> None:
        """Delete a file that has left, with its folder."""
        if self._root is not None and path.parent.parent == self._root:
            shutil.rmtree(path.parent, ignore_errors=True)

    def close(self) -> None:
        """Delete everything."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None


def safe_name(name: str) -> str:
    """A file name that is the same on every system, and in a header."""
    return _NOT_IN_NAMES.sub("-", name).strip("-.")[-_LONGEST_NAME:] or "file"


def landing(app: App[Any], path: Path) -> Path:
    """Where to write what a person saves as ``path``: there, or on its way to their browser."""
    outbox = getattr(app, "outbox", None)
    return outbox.place(path.name) if app.is_web and isinstance(outbox, Outbox) else path


def packed(files: Sequence[Path], folder: Path, into: Path) -> Path:
    """One file for a browser: the only one, or an archive (not compressed) of all that lie in ``folder``.

    Raises OSError. Blocks: for a thread.
    """
    if len(files) == 1:
        return files[0]
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED, strict_timestamps=False) as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
    return into
