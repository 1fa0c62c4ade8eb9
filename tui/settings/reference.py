"""Describe every setting: for ``docs/configuration.md``, for a new file, and for ``bt-tui config show``."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from tui.actions import ACTIONS, SCOPE_TITLES
from tui.analysis.health.rules import HealthRules
from tui.settings.loading import variable_of
from tui.settings.model import Configuration, PatternSettings

LINE_CELLS = 100
_MANY = 8
_KIND_WORDS = {
    bool: "true or false",
    str: "string",
    int: "whole number",
    float: "number",
}
INTRODUCTION = """# Configuration

Every setting has a default, so no file is needed. `bt-tui config edit` opens the settings file (TOML); if it
does not exist, it is created with every setting as a comment. `bt-tui config path` prints its path, usually
`~/.config/bt-tui/config.toml`; set `BT_TUI_CONFIG` to use another one.

In order of precedence: flags (`--remote`, `--readonly`), environment variables (`BT_TUI_` and the setting's
name), the file, the default. `bt-tui config show` prints each value and its source. `bt-tui config validate`
checks a file and reports the line of each error. If the file has errors, the dashboard starts with the
defaults and shows a warning; the other commands exit with code 2.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting: its dotted ``name``, accepted values, default, and description."""

    name: str
    kind: str
    default: Any
    text: str

    @property
    def section(self) -> str:
        """Table of the setting; empty at the top level."""
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        """Name within the table."""
        return self.name.rpartition(".")[2]

    @property
    def is_table(self) -> bool:
        """True if the keys of this table are not fixed."""
        return isinstance(self.default, dict)


def entries() -> Iterator[Entry]:
    """Yield all settings except those of patterns, in file order: top-level settings first."""
    tables: list[tuple[str, Any]] = []
    texts = _attribute_docstrings(Configuration)
    for name, field in Configuration.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind)):
            tables.append((name, kind))
        elif name != "patterns":
            entry = Entry(name, _kind_words(kind), _default(field), texts.get(name, ""))
            if entry.is_table:
                tables.append((name, entry))
            else:
                yield entry
    for name, kind in tables:
        if isinstance(kind, Entry):
            yield kind
        elif issubclass(kind, BaseModel):
            texts = _attribute_docstrings(kind)
            for key, field in kind.model_fields.items():
                words = _kind_words(field.annotation)
                yield Entry(f"{name}.{key}", words, _default(field), texts.get(key, ""))
        else:
            yield from _rules(name)


def _rules(section: str) -> Iterator[Entry]:
    words = _attribute_docstrings(HealthRules)
    for one in fields(HealthRules):
        default = one.default if one.default is not MISSING else None
        yield Entry(f"{section}.{one.name}", _kind_words(type(default)), default, words.get(one.name, ""))


def _attribute_docstrings(kind: type) -> dict[str, str]:
    """Return the docstring below each attribute, which Python does not keep at run time."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    last = ""
    for statement in body.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            last = statement.target.id
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and last:
            found[last], last = _one_line(str(statement.value.value)), ""
    return found


def section_text(section: str) -> str:
    """Return the description of a table."""
    if section == "health":
        return _attribute_docstrings(Configuration)[section]
    kind = Configuration.model_fields[section].annotation
    inside = isinstance(kind, type) and issubclass(kind, BaseModel)
    return _one_line((kind.__doc__ if inside else "") or "")


def toml_value(value: Any) -> str:
    """Format a value as TOML."""
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
    """Return a new settings file, with every default as a comment."""
    lines = [
        "# Settings of bt-tui. Uncomment what you change; check it with: bt-tui config validate",
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
        *_comment(_one_line(PatternSettings.__doc__ or "")),
        "# [[patterns]]",
        '# name = "my trainer"',
        "# regex = 'it (?P<step>\\d+) of (?P<total>\\d+): (?P<loss>[\\d.]+)'",
    ]
    return "\n".join(lines) + "\n"


def document() -> str:
    """Return the text of ``docs/configuration.md``."""
    parts = [INTRODUCTION]
    section = None
    for entry in entries():
        if entry.is_table or (entry.section != section and entry.section):
            section = entry.name if entry.is_table else entry.section
            about = entry.text if entry.is_table else section_text(section)
            parts.append(f"\n## `[{section}]`\n\n{about}\n" + ("" if entry.is_table else "\n"))
            if not entry.is_table:
                parts.append(_HEAD)
        elif section is None:
            section = ""
            parts.append("\n## Top level\n\n" + _HEAD)
        if not entry.is_table:
            parts.append(_row(entry))
    parts.append(f"\n## `[[patterns]]`\n\n{_one_line(PatternSettings.__doc__ or '')}\n\n{_HEAD}")
    texts = _attribute_docstrings(PatternSettings)
    for key, field in PatternSettings.model_fields.items():
        words = _kind_words(field.annotation)
        parts.append(f"| `{key}` | {words} |  | {_cell(texts.get(key, ''))} |\n")
    parts.append("\n## Actions\n\nThe action ids that `[keys]` accepts, with their default keys.\n\n")
    parts.append("| Action | Keys | Where | Description |\n|---|---|---|---|\n")
    for action in ACTIONS:
        keys = " ".join(f"`{key}`" for key in action.keys.split(","))
        where = SCOPE_TITLES[action.scope]
        parts.append(f"| `{action.scope}.{action.id}` | {keys} | {where} | {_cell(action.help)} |\n")
    return "".join(parts)


_HEAD = "| Setting | Values | Default | Description |\n|---|---|---|---|\n"


def _row(entry: Entry) -> str:
    default = f"`{toml_value(entry.default)}`" if entry.default is not None else ""
    return f"| `{entry.key}` | {entry.kind} | {default} | {_cell(entry.text)} `{variable_of(entry.name)}` |\n"


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, LINE_CELLS - 2, break_long_words=False)]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _default(field: Any) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _kind_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return ", ".join(f"`{one}`" for one in choices) if len(choices) <= _MANY else _themes(choices)
    if kind in _KIND_WORDS:
        return _KIND_WORDS[kind]
    inner = [one for one in get_args(kind) if one is not type(None)]
    if len(inner) == 1 and get_origin(kind) is not list:
        return _kind_words(inner[0])
    if get_origin(kind) is dict:
        return "table"
    return "list of strings"


def _themes(choices: tuple[str, ...]) -> str:
    return ", ".join(f"`{one}`" for one in choices)


if __name__ == "__main__":
    import sys

    sys.stdout.write(document())
