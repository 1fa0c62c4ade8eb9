"""Whether there is a terminal to draw on."""

from __future__ import annotations

import sys

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed


def need_terminal() -> None:
    """Raise CommandFailed where there is no terminal for the dashboard."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed(
            "the dashboard needs a terminal; bt-tui projects, jobs, job and logs work without one",
            ExitCode.USAGE,
        )
