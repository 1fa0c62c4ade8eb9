"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import click

from tui.commands.confirmation import NON_INTERACTIVE
from tui.commands.output import Output

Command = TypeVar("Command", bound=Callable[..., Any])

TABLE, JSON, CSV, TEXT, NDJSON = "table", "json", "csv", "text", "ndjson"


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for every command: the name given by ``--remote``, and where to write."""

    remote_name: str | None = None
    output: Output = field(default_factory=Output)
    readonly: bool = False


def _set_remote(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """Keep ``--remote`` in the settings, wherever on the command line it stood."""
    outer = context.find_object(Settings) or Settings()
    context.obj = replace(outer, remote_name=value) if value is not None else outer


def _set_non_interactive(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[NON_INTERACTIVE] = True


def _set_readonly(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Keep ``--readonly`` likewise."""
    outer = context.find_object(Settings) or Settings()
    context.obj = replace(outer, readonly=True) if value else outer


def readonly_option(command: Command) -> Command:
    """``--readonly``: nothing may be changed, whatever the command."""
    return click.option(
        "--readonly",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_set_readonly,
        help="Only look: whatever would change something at the server is refused.",
    )(command)


def remote_option(command: Command) -> Command:
    """``--remote NAME``, accepted before and after the subcommand.

    So are the official ``--non-interactive`` and ``--log``, without a line in the help.
    """
    command = click.option(
        "--non-interactive", is_flag=True, expose_value=False, hidden=True, callback=_set_non_interactive
    )(command)
    command = click.option("--log", expose_value=False, hidden=True)(command)  # what it is for is not there
    return click.option(
        "--remote",
        metavar="NAME",
        expose_value=False,
        is_eager=True,
        callback=_set_remote,
        help="A section of ~/.trussrc or profile of the Go CLI, or local: an emulator on this machine"
        " (default: the environment, else the only section).",
    )(command)


def format_option(*formats: str) -> Callable[[Command], Command]:
    """``-o/--output FORMAT``, the first of ``formats`` being the default."""
    return click.option(
        "-o",
        "--output",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="How to print it.",
    )


def yes_option(command: Command) -> Command:
    """``--yes``: agree to whatever would be asked."""
    return click.option("--yes", "-y", "assume_yes", is_flag=True, help="Do not ask.")(command)


def examples(*command_lines: str) -> str:
    r"""An epilog for a command's help: the examples, a line each. ``\\b`` keeps click from joining them."""
    return "\b\nExamples:\n" + "\n".join(f"  {command_line}" for command_line in command_lines)
