"""Write tables to a file that only this person can read; never over another one by mistake."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from api_client.files import PRIVATE_FILE_MODE, write_file
from tui.insight.export import ExportTable, csv_text, json_text

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
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
