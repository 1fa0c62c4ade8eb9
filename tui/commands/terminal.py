"""Whether there is a terminal to draw on."""

from __future__ import annotations

import sys

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed


def need_terminal() -> None:
    """Raise CommandFailed where there is no terminal for the dashboard."""
    streams = (("input", sys.stdin), ("output", sys.stdout))
    elsewhere = [name for name, stream in streams if not stream.isatty()]
    if elsewhere:
        raise CommandFailed(
            f"the dashboard needs a terminal, and standard {' and '.join(elsewhere)}"
            f" {'lead' if len(elsewhere) > 1 else 'leads'} elsewhere;"
            " bt-tui projects, jobs, job and logs work without one",
            ExitCode.USAGE,
        )
