"""What differs between the code and the settings of two jobs, by the files of their archives.

A config is read, never run: what differs is the source text of an argument. Of environment variables only the
names are compared, and what is recognized as a secret is removed from everything that is shown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from pathlib import PurePosixPath
from typing import Literal

from api_client import definitions
from api_client.recordings.scrub import Scrubber
from tui.text.names import shortened
from tui.text.sanitize import sanitize, sanitize_lines

Files = Mapping[str, bytes]
"""The content of files by path."""
Values = Mapping[str, str]
Change = Literal["added", "removed", "changed"]

MAX_FILE_BYTES = 512 * 1024
"""Larger files, such as data, are compared, but not shown line by line."""
MAX_LINES = 200
"""Lines shown of each file, and files shown line by line."""
_MAX_CHARACTERS = 300
_ASSIGNED = re.compile(r"^(\s*(?:export\s+)?\w+\s*[:=]).*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs; None where it is not set. Sanitized."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that differs; ``lines`` is a unified diff, empty for what is not text, and for configs.

    ``more`` is the number of lines that are left out.
    """

    path: str
    change: Change
    lines: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class CodeDifferences:
    """What differs: arguments and constants of configs, names of environment variables, and files."""

    settings: tuple[Difference, ...] = ()
    environment: tuple[Difference, ...] = ()
    files: tuple[FileDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class _Config:
    """The arguments and constants of a config, and its environment variables, as source text."""

    values: Values
    environment: Values


_NOTHING = _Config({}, {})


def code_differences(before: Files, after: Files) -> CodeDifferences:
    """Compare the files of two archives; of a config its values are shown instead of its lines."""
    scrub = Scrubber()
    settings: list[Difference] = []
    environment: list[Difference] = []
    files: list[FileDifference] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        was, now = _config_of(old) or _NOTHING, _config_of(new) or _NOTHING
        settings += _differing(was.values, now.values, scrub)
        environment += _hidden(was.environment, now.environment)
        is_config = (was, now) != (_NOTHING, _NOTHING)
        lines = [] if is_config else _lines_that_differ(path, old, new, scrub)
        shown = lines[:MAX_LINES] if len(files) < MAX_LINES else []
        change: Change = "added" if old is None else "removed" if new is None else "changed"
        files.append(FileDifference(sanitize(path), change, tuple(shown), len(lines) - len(shown)))
    return CodeDifferences(tuple(settings), tuple(environment), tuple(files))


def _differing(before: Values, after: Values, scrub: Scrubber) -> Iterator[Difference]:
    def value(name: str, text: str | None) -> str | None:
        word = f"{name.rpartition('.')[2]} = "  # the name tells whether the value is a secret
        return text and shortened(sanitize(scrub(word + text).removeprefix(word)), _MAX_CHARACTERS)

    for name in _names_that_differ(before, after):
        yield Difference(sanitize(name), value(name, before.get(name)), value(name, after.get(name)))


def _hidden(before: Values, after: Values) -> Iterator[Difference]:
    for name in _names_that_differ(before, after):
        was = "set" if name in before else None
        now = None if name not in after else "set" if was is None else "another value"
        yield Difference(sanitize(name), was, now)


def _names_that_differ(before: Values, after: Values) -> list[str]:
    return [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]


def _config_of(content: bytes | None) -> _Config | None:
    """Read the source of a config; None for any other file."""
    if content is None or b"truss_train" not in content or len(content) > MAX_FILE_BYTES:
        return None
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    arguments = {
        f"{owner}.{keyword.arg}": keyword.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and (owner := _definition(call))
        for keyword in call.keywords
        if not _makes_definition(keyword.value)
    }
    constants = {
        statement.targets[0].id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    secret = {name for name in arguments if name.endswith(".environment_variables")}
    made_of = [arguments.pop(name) for name in secret]
    environment: dict[str, str] = {}
    while made_of:
        for node in ast.walk(made_of.pop()):
            if isinstance(node, ast.Dict):
                items = zip(node.keys, node.values, strict=True)
                environment |= {
                    str(key.value): ast.dump(value) for key, value in items if isinstance(key, ast.Constant)
                }
            elif isinstance(node, ast.Name) and node.id in constants:
                made_of.append(constants.pop(node.id))
    shown = arguments | {name: value for name, value in constants.items() if not _makes_definition(value)}
    return _Config({name: ast.unparse(value) for name, value in shown.items()}, environment)


def _makes_definition(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and bool(_definition(value))


def _definition(call: ast.Call) -> str:
    """Return the class of the SDK that is called, itself or by a factory of its; empty for others."""
    parts = ast.unparse(call.func).split(".")
    return next((part for part in parts if part[:1].isupper() and hasattr(definitions, part)), "")


def _lines_that_differ(path: str, old: bytes | None, new: bytes | None, scrub: Scrubber) -> list[str]:
    before, after = _text(path, old, scrub), _text(path, new, scrub)
    if before is None or after is None:
        return []
    lines = unified_diff(
        sanitize_lines(before).splitlines(), sanitize_lines(after).splitlines(), n=3, lineterm=""
    )
    return list(islice(lines, 2, None)) or ["differs only in what is not shown: secrets, ends of lines"]


def _text(path: str, content: bytes | None, scrub: Scrubber) -> str | None:
    """Return a file as text without secrets; None if it is too large or not text."""
    if content is None:
        return ""
    if len(content) > MAX_FILE_BYTES or b"\0" in content:
        return None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    is_environment = ".env" in (PurePosixPath(path).name[:4], PurePosixPath(path).suffix)
    return _ASSIGNED.sub(r"\1…", text) if is_environment else scrub(text)
