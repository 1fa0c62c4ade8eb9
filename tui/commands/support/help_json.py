"""Output of ``bt-tui --help-json``: the commands, their parameters and the exit codes, for programs."""

from __future__ import annotations

from typing import Any

import click

from api_client.version import __version__
from tui.commands.support.catalogue import PROGRAM, walk
from tui.commands.support.exit_codes import ExitCode


def described(root: click.Group) -> dict[str, Any]:
    """Return what ``--help`` shows of all commands as one JSON document; hidden ones are left out."""
    return {
        "program": PROGRAM,
        "version": __version__,
        "options": _parameters(root, "option"),
        "commands": [
            {
                "name": name,
                "help": command.get_short_help_str(limit=200),
                "arguments": _parameters(command, "argument"),
                "options": _parameters(command, "option"),
            }
            for name, command in walk(root)
            if name and not command.hidden
        ],
        "exit_codes": [{"code": int(code), "meaning": code.meaning} for code in ExitCode],
    }


def _parameters(command: click.Command, kind: str) -> list[dict[str, Any]]:
    context = click.Context(command)
    return [
        {
            "names": [*parameter.opts, *parameter.secondary_opts] if kind == "option" else [parameter.name],
            "value": None if getattr(parameter, "is_flag", False) else parameter.make_metavar(context),
            "choices": list(parameter.type.choices) if isinstance(parameter.type, click.Choice) else None,
            "required": parameter.required,
            "repeatable": parameter.multiple or parameter.nargs == -1,
            "help": getattr(parameter, "help", None),
        }
        for parameter in command.params
        if parameter.param_type_name == kind and not getattr(parameter, "hidden", False)
    ]
