"""On which line of a TOML file each setting stands; tomllib does not say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]


def lines_of(text: str) -> dict[Path, int]:
    """Line numbers (from 1) by path, of a text that is well-formed; tables have the line of their heading.

    Each statement is found by asking tomllib whether it is whole yet, so that no rule of TOML is written
    twice. An element of an array of tables has its index in the path.
    """
    found: dict[Path, int] = {}
    table: Path = ()
    arrays: dict[Path, int] = {}
    for number, statement in _statements(text):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table, is_array = _heading(parsed)
            table = _within(table, arrays)
            if is_array:
                arrays[table] = arrays.get(table, -1) + 1
                table = (*table, arrays[table])
            found.setdefault(table, number)
        else:
            for path in _paths(parsed):
                found.setdefault((*table, *path), number)
    return found


def line_of(found: Mapping[Path, int], path: Path) -> int | None:
    """The line of a path, or of the nearest table around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in found:
            return found[path[:length]]
    return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each heading or assignment with the line on which it begins."""
    pending, begin = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        begin = begin if pending else number
        pending += line + "\n"
        try:
            tomllib.loads(pending)
        except tomllib.TOMLDecodeError:
            continue
        yield begin, pending
        pending = ""


def _heading(parsed: dict[str, Any]) -> tuple[Path, bool]:
    path: list[str | int] = []
    inside: Any = parsed
    while isinstance(inside, dict) and inside:
        key, inside = next(iter(inside.items()))
        path.append(key)
    return tuple(path), isinstance(inside, list)


def _within(table: Path, arrays: Mapping[Path, int]) -> Path:
    """A table below an array of tables belongs to its newest element."""
    for length in range(len(table) - 1, 0, -1):
        if table[:length] in arrays:
            return (*table[:length], arrays[table[:length]], *table[length:])
    return table


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield (key,)
            for path in _paths(below):
                yield (key, *path)
