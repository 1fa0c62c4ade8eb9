"""Files on their way to a browser: where the dashboard is a page, what is saved becomes a download there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from typing import Protocol

from api_client.files import PRIVATE_FILE_MODE, AtomicFile, write_file
from api_client.models.logs import LogEntry
from tui.analysis.export import ExportTable, csv_text, json_text
from tui.text.log_times import record_of, written

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 120
_PREFIX = "bt-tui-out-"
_MARK = "in-use"
"""A file in the folder, locked for as long as its process lives, however that ends."""


class Outbox:
    """A private folder for them, made when it is first needed, gone when it is closed."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._mark: int | None = None

    def folder(self) -> Path:
        """A new empty folder in it."""
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 0700
            self._mark = _marked(self._root)
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
        if self._mark is not None:
            os.close(self._mark)
            self._mark = None


def _marked(root: Path) -> int | None:
    """Mark a new folder as in use; the descriptor that keeps the mark.

    None where there are no locks, on Windows and on some network file systems: what is left there stays.
    """
    if fcntl is None:
        return None
    unnamed = root / f"{_MARK}-soon"  # a mark that can be seen is locked
    descriptor = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        os.close(descriptor)
        return None
    unnamed.rename(root / _MARK)
    return descriptor


def sweep_abandoned() -> None:
    """Delete this person's folders whose process was killed, wherever temporary files are."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if fcntl is not None and _is_abandoned(root):
            shutil.rmtree(root, ignore_errors=True)


def _is_abandoned(root: Path) -> bool:
    try:
        if root.is_symlink() or root.stat().st_uid != os.getuid():
            return False
        descriptor = os.open(root / _MARK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False  # another's, or made this moment
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def safe_name(name: str) -> str:
    """A file name that is the same on every system, and in a header."""
    return _NOT_IN_NAMES.sub("-", name).strip("-.")[-_LONGEST_NAME:] or "file"


class Shown(Protocol):
    """The app, in a terminal or on a page."""

    @property
    def is_web(self) -> bool:
        """Whether it is a page."""
        ...


def landing(app: Shown, path: Path) -> Path:
    """Where to write what a person saves as ``path``: there, or on its way to their browser."""
    outbox = getattr(app, "outbox", None)
    return outbox.place(path.name) if app.is_web and isinstance(outbox, Outbox) else path


def delivered_as(files: Sequence[Path]) -> str:
    """The name that a browser keeps them by: the file's own, or that of an archive of all.

    Browsers ask before they take several downloads after one key, or drop all but the first.
    """
    if len(files) == 1:
        return files[0].name
    stems = [file.stem for file in files]
    common = os.path.commonprefix(stems).rstrip("-._ ")  # noqa: RUF071 - letters are what is meant
    return f"{common or 'files'}.zip"


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


LINES_AT_ONCE = 2_000
"""Lines taken from the view in one turn of the event loop: a few milliseconds."""
RECORD_SUFFIXES = frozenset({".ndjson", ".jsonl"})


def default_path(job_name: str, job_id: str) -> Path:
    """Where a log is saved unless people say otherwise: a name of the job, in the working folder.

    A job's name comes from a server: nothing of it can lead out of the folder.
    """
    name = _NOT_IN_NAMES.sub("-", job_name or job_id).strip("-.")[:64] or "job"
    return Path(f"{name}.log")


def own_path(typed: str) -> Path:
    """The path that a person typed, ``~`` made theirs."""
    return Path(typed.strip()).expanduser()


def renderer(path: Path, timezone: tzinfo | None) -> Callable[[LogEntry], str]:
    """How entries are written to a file of that name: as records of JSON, or as text."""
    if path.suffix.lower() in RECORD_SUFFIXES:
        return lambda entry: json.dumps(record_of(entry)).replace("\x7f", "\\u007f")
    return lambda entry: written(entry, timezone)


async def save_entries(
    entries: Iterator[LogEntry], path: Path, *, timezone: tzinfo | None = None, replace: bool = False
) -> int:
    """Write entries to a file that only this person can read; returns how many.

    The file appears under its name when it is complete. Raises FileExistsError unless ``replace``, and
    OSError for what else cannot be written.
    """
    render = renderer(path, timezone)
    count = 0
    saved = await asyncio.to_thread(AtomicFile, path, mode=PRIVATE_FILE_MODE, replace=replace)
    try:
        while part := list(islice(entries, LINES_AT_ONCE)):
            count += len(part)
            text = "".join(f"{render(entry)}\n" for entry in part)
            await asyncio.to_thread(saved.file.write, text.encode(errors="backslashreplace"))
        await asyncio.to_thread(saved.commit)
    finally:
        saved.discard()
    return count


JSON_SUFFIXES = frozenset({".json"})


def proposed_path(*names: str) -> Path:
    """A name in the working folder; names of a server lead nowhere else."""
    stem = "-".join(_NOT_IN_NAMES.sub("-", name).strip("-.") for name in names if name)
    return Path(f"{stem.strip('-.')[:80] or 'export'}.csv")


def typed_path(typed: str) -> Path:
    """The path that a person typed, ``~`` made theirs. Raises ValueError, RuntimeError."""
    if not typed.strip():
        raise ValueError("a file name is needed")
    path = Path(typed.strip()).expanduser()
    return path if path.suffix else path.with_suffix(".csv")


def files_of(tables: Sequence[ExportTable], path: Path) -> dict[Path, str]:
    """What goes into which file: JSON holds all tables, CSV one; further ones get their name into theirs."""
    if path.suffix.lower() in JSON_SUFFIXES:
        return {path: json_text(tables)}
    names = [path, *(path.with_stem(f"{path.stem}-{table.name}") for table in tables[1:])]
    return {name: csv_text([table]) for name, table in zip(names, tables, strict=True)}


def save_tables(tables: Sequence[ExportTable], path: Path, *, replace: bool = False) -> list[Path]:
    """Write them, as JSON where the name ends in .json, else as CSV; returns the files.

    A file appears under its name when it is complete. Raises FileExistsError, before anything is written,
    unless ``replace``, and OSError for what else cannot be written.
    """
    files = files_of(tables, path)
    there = [name for name in files if name.exists()]
    if there and not replace:
        raise FileExistsError(str(there[0]))
    for name, text in files.items():
        content = text.encode(errors="backslashreplace")
        write_file(name, content, mode=PRIVATE_FILE_MODE, replace=replace)
    return list(files)
