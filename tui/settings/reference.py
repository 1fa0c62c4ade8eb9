"""Every setting in words: for ``docs/configuration.md``, for a new file, and for ``bt-tui config show``."""

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
    str: "text",
    int: "whole number",
    float: "number",
}
INTRODUCTION = """# Configuration

Everything has a default, so that no file is needed. `bt-tui config edit` opens the one file there is; if
it is not there, it makes it, with every setting in it as a comment. `bt-tui config path` says where it
is, usually `~/.config/bt-tui/config.toml`; `BT_TUI_CONFIG` names another one. It is TOML.

What counts, first match wins: flags (`--remote`, `--readonly`), environment variables (`BT_TUI_` and the
setting's name), the file, the default. `bt-tui config show` prints each value and where it came from;
`bt-tui config validate` checks a file and names the line of whatever is wrong. With a broken file the
dashboard starts with the defaults and says so, and the other commands end with exit code 2.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting: its dotted ``name``, what values it takes, its default, and what it does."""

    name: str
    kind: str
    default: Any
    text: str

    @property
    def section(self) -> str:
        """The table it is in; empty for the top of the file."""
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        """Its name within the table."""
        return self.name.rpartition(".")[2]

    @property
    def is_table(self) -> bool:
        """Whether its keys are free."""
        return isinstance(self.default, dict)


def entries() -> Iterator[Entry]:
    """All settings but those of patterns, in the order of the file: those without a table first."""
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
    """The string below each attribute, which Python itself forgets."""
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
    """What a table is about."""
    if section == "health":
        return _attribute_docstrings(Configuration)[section]
    kind = Configuration.model_fields[section].annotation
    inside = isinstance(kind, type) and issubclass(kind, BaseModel)
    return _one_line((kind.__doc__ if inside else "") or "")


def toml_value(value: Any) -> str:
    """A value as TOML has it."""
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
    """A new file: every setting with its default, as a comment."""
    lines = [
        "# bt-tui's settings. Take the # away from what you change; bt-tui config validate checks it.",
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
    """``docs/configuration.md``."""
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
            parts.append("\n## At the top of the file\n\n" + _HEAD)
        if not entry.is_table:
            parts.append(_row(entry))
    parts.append(f"\n## `[[patterns]]`\n\n{_one_line(PatternSettings.__doc__ or '')}\n\n{_HEAD}")
    texts = _attribute_docstrings(PatternSettings)
    for key, field in PatternSettings.model_fields.items():
        words = _kind_words(field.annotation)
        parts.append(f"| `{key}` | {words} |  | {_cell(texts.get(key, ''))} |\n")
    parts.append("\n## Actions\n\nWhat `[keys]` may name, with the keys that each has without it.\n\n")
    parts.append("| Action | Keys | Where | |\n|---|---|---|---|\n")
    for action in ACTIONS:
        keys = " ".join(f"`{key}`" for key in action.keys.split(","))
        where = SCOPE_TITLES[action.scope]
        parts.append(f"| `{action.scope}.{action.id}` | {keys} | {where} | {_cell(action.help)} |\n")
    return "".join(parts)


_HEAD = "| Setting | Values | Default | |\n|---|---|---|---|\n"


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
    return "list of texts"


def _themes(choices: tuple[str, ...]) -> str:
    return ", ".join(f"`{one}`" for one in choices)


if __name__ == "__main__":
    import sys

    sys.stdout.write(document())
