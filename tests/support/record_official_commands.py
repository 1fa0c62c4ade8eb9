"""Record the commands and options of the truss CLI that docs/truss.md maps to ours.

Needs an environment with truss (0.18.36 when the data was recorded); it is not a dependency of this project::

    python tests/support/record_official_commands.py

The baseten CLI is one Go binary: its part of the file follows the ``Flags`` of its sources (1.5).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
from truss.cli.cli import truss_cli

RECORDED = Path(__file__).parents[1] / "cli" / "golden" / "official_commands.json"
MAPPED = ("train", "ssh", "login")


def commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Every command below, by its words, with its long options."""
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from commands(command.commands[name], (*words, name))
    else:
        names = [name for option in command.params for name in (*option.opts, *option.secondary_opts)]
        yield " ".join(words), sorted(name for name in names if name.startswith("--"))


def main() -> None:
    """Replace what is recorded of truss."""
    found = {words: names for each in MAPPED for words, names in commands(truss_cli.commands[each], (each,))}
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    recorded["truss"] = {"version": version("truss"), "commands": dict(sorted(found.items()))}
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
