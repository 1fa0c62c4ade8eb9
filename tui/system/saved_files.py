"""Save logs and tables to files; if the dashboard is a web page, saved files become downloads.

A file appears under its name only once it is complete. Names from a server are made safe first.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from api_client.files import PRIVATE_FILE_MODE, AtomicFile, user_path, write_file
from tui.analysis.export import ExportTable, csv_text, json_text

if TYPE_CHECKING:
    from api_client.models.logs import LogEntry

_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_OUTBOX_PREFIX = "bt-tui-outbox-"


class Outbox:
    """A private folder for outgoing files, created on first use and deleted on close."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._lock: int | None = None

    def folder(self) -> Path:
        """Return a new folder in the outbox."""
        if self._root is None:
            new_root = Path(tempfile.mkdtemp(prefix=f"new-{_OUTBOX_PREFIX}"))  # mode 0700
            self._lock = os.open(new_root, os.O_RDONLY)
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._root = new_root.rename(new_root.with_name(new_root.name.removeprefix("new-")))
        return Path(tempfile.mkdtemp(dir=self._root))

    def path_for(self, name: str) -> Path:
        """Return a path for `name` in a new folder, sanitized so that it cannot leave the folder."""
        return self.folder() / safe_name(name)

    def close(self) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def delete_abandoned_outboxes() -> None:
    """Delete outbox folders that killed processes of this user left in the temporary directory."""
    for root in Path(tempfile.gettempdir()).glob(f"{_OUTBOX_PREFIX}*"):
        if _is_abandoned(root):
            shutil.rmtree(root, ignore_errors=True)


def _is_abandoned(root: Path) -> bool:
    """Return True if no process holds the folder's lock: the owner holds it until it ends."""
    try:
        if root.lstat().st_uid != os.getuid():
            return False
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def safe_name(name: str) -> str:
    """Return a file name that is valid on every system and in an HTTP header."""
    return _UNSAFE_IN_NAMES.sub("-", name).strip("-.")[-120:] or "file"


class DeliveryHost(Protocol):
    """The part of the app's interface that saving files needs."""

    @property
    def is_web(self) -> bool: ...


def delivery_path(app: DeliveryHost, path: Path) -> Path:
    """Return the path to write a file to: ``path``; for a download by a browser, a path in the outbox."""
    outbox = getattr(app, "outbox", None)
    return outbox.path_for(path.name) if app.is_web and isinstance(outbox, Outbox) else path


def download_name(files: Sequence[Path]) -> str:
    """Return the name of the download: that of the only file, or of a zip archive of all files.

    Several files become one archive because browsers ask before accepting several downloads for one key
    press, or drop all but the first.
    """
    if len(files) == 1:
        return files[0].name
    stems = [file.stem for file in files]
    common = os.path.commonprefix(stems).rstrip("-._ ")  # noqa: RUF071 - a common prefix of letters, not of folders
    return f"{common or 'files'}.zip"


def pack_files(files: Sequence[Path], folder: Path, archive_path: Path) -> Path:
    """Return the only file, or pack all files into ``archive_path``. Raises OSError. Blocks: use a thread."""
    if len(files) == 1:
        return files[0]
    import zipfile  # imported late: rarely needed, and Home starts faster

    with zipfile.ZipFile(archive_path, "w", zipfile.ZIP_STORED, strict_timestamps=False) as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
    return archive_path


def expanded_path(typed: str) -> Path:
    """Return the typed path with ``~`` expanded; the ``~name`` of an unknown user stays as typed."""
    return user_path(typed.strip())


def is_existing_file(typed: str) -> bool:
    """Return True if the typed path is an existing file; False also if it is no valid path."""
    with suppress(OSError):
        return expanded_path(typed).is_file()
    return False


def renderer(path: Path, timezone: tzinfo | None) -> Callable[[LogEntry], str]:
    """Return the formatter for a file with that name: JSON records or text."""
    from tui.text.log_entries import entry_fields, entry_text  # slow: imports the API's models

    if path.suffix.lower() in {".ndjson", ".jsonl"}:
        return lambda entry: json.dumps(entry_fields(entry)).replace("\x7f", "\\u007f")
    return lambda entry: entry_text(entry, timezone)


async def save_entries(
    entries: Iterator[LogEntry], path: Path, *, timezone: tzinfo | None = None, replace: bool = False
) -> int:
    """Write entries to a file that only the user can read, complete or not at all; return the entry count."""
    render = renderer(path, timezone)
    count = 0
    # Not in a thread: if the task were canceled meanwhile, the temporary file would stay, and stay open.
    atomic_file = AtomicFile(path, mode=PRIVATE_FILE_MODE, replace=replace)
    try:
        # formatting 2,000 entries blocks the event loop for a few ms
        while chunk := list(islice(entries, 2_000)):
            count += len(chunk)
            text = "".join(f"{render(entry)}\n" for entry in chunk)
            await asyncio.to_thread(atomic_file.file.write, text.encode(errors="backslashreplace"))
        await asyncio.to_thread(atomic_file.commit)
    finally:
        atomic_file.discard()
    return count


def proposed_path(*names: str, suffix: str = ".csv", fallback_name: str = "export") -> Path:
    """Return a path in the working folder; names from a server cannot lead out of it."""
    stem = "-".join(_UNSAFE_IN_NAMES.sub("-", name).strip("-.") for name in names if name)
    return Path(f"{stem.strip('-.')[:80] or fallback_name}{suffix}")


def parse_typed_path(typed: str) -> Path:
    """Return the typed path, ``~`` expanded, by default a ``.csv``. Raises ValueError if it is empty."""
    if not typed.strip():
        raise ValueError("enter a file name")
    path = expanded_path(typed)
    return path if path.suffix else path.with_suffix(".csv")


def contents_by_path(tables: Sequence[ExportTable], path: Path) -> dict[Path, str]:
    """Return the files and their contents: one JSON file for all tables, or a CSV file for each."""
    if path.suffix.lower() == ".json":
        return {path: json_text(tables)}
    names = [path, *(path.with_stem(f"{path.stem}-{table.name}") for table in tables[1:])]
    return {name: csv_text([table]) for name, table in zip(names, tables, strict=True)}


def save_tables(tables: Sequence[ExportTable], path: Path, *, replace: bool = False) -> list[Path]:
    """Write the tables, as JSON or CSV by the suffix. Raises FileExistsError before writing, and OSError."""
    files = contents_by_path(tables, path)
    existing = [name for name in files if name.exists()]
    if existing and not replace:
        raise FileExistsError(str(existing[0]))
    for name, text in files.items():
        content = text.encode(errors="backslashreplace")
        write_file(name, content, mode=PRIVATE_FILE_MODE, replace=replace)
    return list(files)
