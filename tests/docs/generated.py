"""Generate the parts of the documentation that come from the code.

``PYTHONPATH=.:tests .venv/bin/python tests/docs/generated.py`` rewrites them. Tests compare
them with the code.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from api_client import Remote, TrainingClient
from api_client.routes import ROUTES
from support.log_reading import read_line
from tui.actions.keymap import key_labels
from tui.actions.table import SCOPE_TITLES, Scope, actions_of
from tui.analysis.health.check import Check
from tui.analysis.health.registry import CHECKS
from tui.analysis.progress.lines.custom import GROUPS
from tui.cli import cli
from tui.commands.support.catalogue import walk_commands
from tui.settings.reference import one_line, toml_value

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = REPOSITORY / "docs"

TRAINERS: tuple[tuple[str, str], ...] = (
    ("dicts: Trainer, TRL", "{'loss': 0.91, 'learning_rate': 1.9e-05, 'epoch': 1.3}"),
    ("text: verl", "step:412 - actor/pg_loss:0.0123 - critic/score/mean:0.51"),
)
"""Trainers, each with a line as it prints it."""

_INNER = ("loss_name", "step_name", "from_bar", "rank", "whole_epochs", "is_epoch_0", "metrics")
"""How a reading was read, rather than what it reports."""
_EXAMPLE = re.compile(r"<!-- examples/(\w+\.py) -->\n(?:```python\n.*?```\n)?", re.DOTALL)
_MADE = re.compile(r"<!-- (checks|trainers|groups) -->\n(?:(?:(?!<!-- ).)*<!-- end -->\n)?", re.DOTALL)


def with_part(page: str, name: str, content: str) -> str:
    """The page with this content between the part's marks."""
    before, mark, rest = page.partition(f"<!-- {name} -->\n")
    return before + mark + content + "<!-- end -->\n" + rest.partition("<!-- end -->\n")[2]


def library_guide(guide: str) -> str:
    """The guide with every example as its file is now, the calls of the client and its requests."""

    def shown(match: re.Match[str]) -> str:
        source = (REPOSITORY / "examples" / match[1]).read_text(encoding="utf-8")
        return f"<!-- examples/{match[1]} -->\n```python\n{source}```\n"

    guide = with_part(_EXAMPLE.sub(shown, guide), "calls", calls())
    return with_part(guide, "requests", requests())


def calls() -> str:
    """The parts of the client with their methods, and the methods of its own."""
    client = TrainingClient(Remote("here", "https://app.invalid", "https://api.invalid", None, "nowhere"))
    rows = []
    for name in (*vars(client), *vars(TrainingClient)):
        if not name.startswith("_") and name not in ("remote", "clock", "aclose"):
            part, member = getattr(client, name), vars(TrainingClient).get(name)
            about = (member or type(part)).__doc__ or ""
            public = [] if callable(part) else [one for one in vars(type(part)) if not one.startswith("_")]
            methods = ", ".join(f"`{one}`" for one in public if one != "aclose")
            rows.append(f"| `{name}` | {methods} | {_cell(about).partition('. ')[0].removesuffix('.')} |\n")
    return "| `client.` | Methods | Purpose |\n|---|---|---|\n" + "".join(rows)


def requests() -> str:
    """Every route, in the words of its errors."""
    rows = [
        f"| `{route.method} {path}` | {route.purpose} | {'yes' if route.is_change else ''} |\n"
        for route in ROUTES
        for path in route.paths
    ]
    return "| Request | To | A change |\n|---|---|---|\n" + "".join(rows)


def health_page(page: str) -> str:
    """The page with checks, trainers and groups as they are now."""

    def made(match: re.Match[str]) -> str:
        part = {"checks": checks, "trainers": trainers, "groups": groups}[match[1]]()
        return f"<!-- {match[1]} -->\n{part}<!-- end -->\n"

    return _MADE.sub(made, page)


def commands_page(page: str) -> str:
    """The page of commands, with the table of all that are not hidden."""
    rows = "".join(
        f"| `{words}` | {_cell(command.get_short_help_str(limit=200))} |\n"
        for words, command in walk_commands(cli)
        if words and not command.hidden
    )
    return with_part(page, "commands", f"| Command | Purpose |\n|---|---|\n{rows}")


def keys_page(page: str) -> str:
    """The page with a table of keys for every scope."""
    keys = "\n".join(
        f"## {SCOPE_TITLES[scope]}\n\n| Key | Action | Id |\n|---|---|---|\n" + _keys_of(scope)
        for scope in Scope
    )
    return with_part(page, "keys", keys)


def _keys_of(scope: Scope) -> str:
    return "".join(
        f"| {' '.join(f'`{sign}`' for sign in key_labels(action.keys).split(' '))} | {action.help}"
        f" | `{action.scope}.{action.id}` |\n"
        for action in actions_of(scope)
    )


def checks() -> str:
    """What each check needs, what excuses it, when it ends, what it costs, and its settings."""
    return f"There are {len(CHECKS)} kinds.\n\n" + "".join(map(_check, CHECKS))


def _check(check: Check[Any]) -> str:
    parts = {"Excused": check.excused, "Ends": check.ends, "Costs": check.costs}
    limits = ", ".join(f"`{each.name}` = {toml_value(each.default)}" for each in fields(check.limits))
    sentences = [
        f"- **{check.title}**: `{check.kind}`, {check.severity}. *Needs* {check.needs}",
        *(f"*{name}*: {text.removesuffix('.')}." for name, text in parts.items() if text),
        *([f"*Settings*: {limits}."] if limits else []),
    ]
    text = " ".join(sentences)
    return (
        textwrap.fill(text, 120, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
        + "\n"
    )


def trainers() -> str:
    """What is read of one line of each trainer, by reading it."""
    cells = [(name, line.strip().replace("|", "\\|"), _read(line)) for name, line in TRAINERS]
    rows = [f"| {name} | `{line}` | {read} |\n" for name, line, read in cells]
    return "| Trainer | A line | What is read |\n|---|---|---|\n" + "".join(rows)


def groups() -> str:
    return "Groups with a meaning: " + ", ".join(f"`{name}`" for name in GROUPS) + ".\n"


def _read(line: str) -> str:
    reading = read_line(line)
    assert reading is not None, line
    told = reading._asdict() | dict(reading.metrics)
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in told.items()
        if value is not None and name not in _INNER
    )


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


PAGES: Mapping[str, Callable[[str], str]] = {
    "commands.md": commands_page,
    "library.md": library_guide,
    "health.md": health_page,
    "keys.md": keys_page,
}
"""Pages with generated parts, each with the function that regenerates it."""


def main() -> None:
    """Rewrite all pages."""
    for name, make in PAGES.items():
        path = DOCUMENTS / name
        path.write_text(make(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
