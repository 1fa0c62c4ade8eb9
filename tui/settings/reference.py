"""Describe every setting, for a new file and ``bt-tui config show``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from api_client.words import command_line
from tui.settings.loading import Settings
from tui.settings.model import Configuration, PatternSettings
from tui.settings.problems import fields_of


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """A setting: its dotted ``name``, its type, its default, and the description that users read."""

    name: str
    kind: Any
    default: Any
    description: str

    @property
    def section(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_table(self) -> bool:
        """True for a table whose keys users choose, such as ``[keys]``."""
        return isinstance(self.default, dict)


def entries() -> Iterator[SettingEntry]:
    """Yield all settings except those of patterns, in file order: top-level settings first."""
    tables: list[SettingEntry] = []
    for entry in _entries_of(Settings):
        if entry.is_table or fields_of(entry.kind):
            tables.append(entry)
        elif entry.name != "patterns":
            yield entry
    for table in tables:
        if table.is_table:
            yield table
        else:
            yield from _entries_of(table.kind, f"{table.name}.")


def _entries_of(kind: Any, prefix: str = "") -> Iterator[SettingEntry]:
    for field in fields(kind):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        text = field.metadata.get("doc") or descriptions(kind)[field.name]
        yield SettingEntry(f"{prefix}{field.name}", fields_of(kind)[field.name], default, text)


def descriptions(kind: type) -> dict[str, str]:
    """Return the description of each setting of a table."""
    return {
        name: one_line(schema.get("description", ""))
        for name, schema in _schemas()[kind.__name__]["properties"].items()
    }


@cache
def _schemas() -> dict[str, Any]:
    adapter = TypeAdapter(Configuration | None, config=ConfigDict(use_attribute_docstrings=True))
    definitions: dict[str, Any] = adapter.json_schema()["$defs"]
    return definitions


def section_text(section: str) -> str:
    if section == "health":
        return descriptions(Configuration)[section]
    kind = fields_of(Settings)[section]
    return one_line(kind.__doc__)


def toml_value(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        sorted_values = sorted(value) if isinstance(value, (set, frozenset)) else value
        return "[" + ", ".join(map(toml_value, sorted_values)) + "]"
    if isinstance(value, float) and "e" not in (short_text := f"{value:g}"):
        return short_text
    return json.dumps(value, ensure_ascii=False)  # JSON and TOML write other values alike


def settings_file_template() -> str:
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
            description = entry.description if entry.is_table else section_text(section)
            lines += [*_comment_lines(description), f"[{section}]", ""]
        if entry.is_table:
            continue
        lines += _comment_lines(entry.description)
        default = toml_value(entry.default) if entry.default is not None else '"…"'
        lines += [f"# {entry.key} = {default}", ""]
    lines += [
        *_comment_lines(one_line(PatternSettings.__doc__ or "")),
        "# [[patterns]]",
        '# name = "my trainer"',
        "# regex = 'it (?P<step>\\d+) of (?P<total>\\d+): (?P<loss>[\\d.]+)'",
    ]
    return "\n".join(lines) + "\n"


def _comment_lines(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, 98, break_long_words=False)]


def one_line(text: str) -> str:
    return " ".join(text.split())
