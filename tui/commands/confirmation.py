"""Ask before something that cannot be taken back."""

from __future__ import annotations

import sys

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.insight.text import inert

NON_INTERACTIVE = "bt-tui.non-interactive"
"""Where the context keeps that nothing may be asked."""


def can_ask() -> bool:
    """Whether somebody sits at the terminal, and ``--non-interactive`` was not given."""
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(NON_INTERACTIVE):
        return False
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, assume_yes: bool) -> None:
    """Return when the person agrees, or ``assume_yes`` does.

    Raises CommandFailed where nobody can be asked, and click.Abort for a no.
    """
    if assume_yes:
        return
    if not can_ask():
        raise CommandFailed(f"{question} (there is no terminal to ask at: give --yes)", ExitCode.USAGE)
    click.confirm(inert(question), abort=True, err=True)
