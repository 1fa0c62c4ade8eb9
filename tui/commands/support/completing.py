"""Shell completion: commands and options, and names from the server."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, suppress
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from tui.commands.support.options import CommandSettings
from tui.commands.support.word_kinds import JOBS, KINDS, is_harmless


class CompletionType(click.types.StringParamType):
    """A text parameter that completes names of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from tui.commands.support.completion_words import fetch_completions

        given = _given(ctx, param)
        try:
            words = fetch_completions(
                self._kind, ctx.find_object(CommandSettings) or CommandSettings(), _job_of(ctx)
            )
        except Exception:  # noqa: BLE001 - at tab there is nobody to tell
            return []
        return [
            CompletionItem(word, help=about or None)
            for word, about in words
            if word.startswith(incomplete) and word not in given and is_harmless(word)
        ]


def _given(context: click.Context, parameter: click.Parameter) -> tuple[object, ...]:
    value = context.params.get(parameter.name or "")
    return tuple(value) if isinstance(value, tuple) else ()


def _job_of(context: click.Context) -> str | None:
    for name, kind in KINDS.items():
        value = context.params.get(name)
        if kind == JOBS and isinstance(value, str):
            return value
    return None


def complete_parameters(command: click.Command) -> None:
    """Enable completion of server names for the command's own parameters."""
    for parameter in command.params:
        kind = KINDS.get(parameter.name or "")
        if kind is not None and parameter.type is click.STRING:
            parameter.type = CompletionType(kind)


def complete_command_tree(command: click.Command) -> None:
    """Enable completion of server names for a command and all its subcommands."""
    complete_parameters(command)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            complete_command_tree(below)


def answer(root: click.Group, program: str) -> NoReturn:
    """Answer the shell's completion request from the environment, print only the words, and exit.

    Exits at once with ``os._exit``: a pending name lookup or a slow server must not delay the shell.
    """
    code = 0
    with redirect_stderr(io.StringIO()):
        try:
            complete_parameters(root)
            root.main(args=[], prog_name=program)
        except SystemExit as over:
            code = over.code if isinstance(over.code, int) else 1
        except Exception:  # noqa: BLE001 - at tab there is nobody to tell
            code = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)
