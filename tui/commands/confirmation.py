"""Ask before something that cannot be taken back."""

from __future__ import annotations

import sys

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.insight.text import inert


def can_ask() -> bool:
    """Whether somebody sits at the terminal."""
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
