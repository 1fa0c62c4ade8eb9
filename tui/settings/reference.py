"""Describe every setting: for a new file, ``bt-tui config show`` and the documentation."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from api_client.words import command_line
from tui.settings.model import Configuration, PatternSettings
from tui.settings.problems import fields_of

LINE_CELLS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting: its dotted ``name``, type, default, and description."""

    name: str
    kind: Any
    default: Any
    text: str

    @property
    def section(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_table(self) -> bool:
        """True if the keys of this table are not fixed."""
        return isinstance(self.default, dict)


def entries() -> Iterator[Entry]:
    """Yield all settings except those of patterns, in file order: top-level settings first."""
    tables: list[Entry] = []
    for entry in _entries_of(Configuration):
        if entry.is_table or fields_of(entry.kind):
            tables.append(entry)
        elif entry.name != "patterns":
            yield entry
    for table in tables:
        if table.is_table:
            yield table
        else:
            yield from _entries_of(table.kind, f"{table.name}.")


def _entries_of(kind: type, above: str = "") -> Iterator[Entry]:
    texts = attribute_docstrings(kind)
    defaults = kind.model_construct() if issubclass(kind, BaseModel) else kind()
    for name, annotation in fields_of(kind).items():
        default = getattr(defaults, name)
        written = type(default) if isinstance(annotation, str) else annotation
        yield Entry(f"{above}{name}", written, default, texts.get(name, ""))


def attribute_docstrings(kind: type) -> dict[str, str]:
    """Return the docstring below each attribute, which Python does not keep at run time."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    last = ""
    for statement in body.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            last = statement.target.id
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and last:
            found[last], last = one_line(str(statement.value.value)), ""
    return found


def section_text(section: str) -> str:
    if section == "health":
        return attribute_docstrings(Configuration)[section]
    kind = Configuration.model_fields[section].annotation
    inside = isinstance(kind, type) and issubclass(kind, BaseModel)
    return one_line((kind.__doc__ if inside else "") or "")


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple, set, frozenset)):
        ordered = sorted(value) if isinstance(value, (set, frozenset)) else value
        return "[" + ", ".join(map(toml_value, ordered)) + "]"
    if isinstance(value, float):
        return f"{value:g}" if "e" not in f"{value:g}" else str(value)
    return str(value)


def template() -> str:
    validate = command_line("config", "validate")
    lines = [
        f"# Settings of bt-tui. Uncomment what you change; check it with: {validate}",
        "",
    ]
    section = ""
    for entry in entries():
        heading = entry.name if entry.is_table else entry.section
        if heading != section:
            section = heading
            about = entry.text if entry.is_table else section_text(section)
            lines += [*_comment(about), f"[{section}]", ""]
        if entry.is_table:
            continue
        lines += _comment(entry.text)
        default = toml_value(entry.default) if entry.default is not None else '"…"'
        lines += [f"# {entry.key} = {default}", ""]
    lines += [
        *_comment(one_line(PatternSettings.__doc__ or "")),
        "# [[patterns]]",
        '# name = "my trainer"',
        "# regex = 'it (?P<step>\\d+) of (?P<total>\\d+): (?P<loss>[\\d.]+)'",
    ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, LINE_CELLS - 2, break_long_words=False)]


def one_line(text: str) -> str:
    return " ".join(text.split())
