"""The terminal, before the dashboard has it: whether there is one, and its first word."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

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


def piped_text(most_characters: int) -> str:
    """Read standard input up to that length. Raises CommandFailed for bytes that are not UTF-8."""
    try:
        text = sys.stdin.read(most_characters)
        text.encode()  # bytes that Python did not understand are surrogates in some locales
    except UnicodeError:
        raise CommandFailed("standard input is not UTF-8", ExitCode.USAGE) from None
    return text


OPENING = "bt-tui: opening …"
CLEAR_LINE = "\r\x1b[K"


@contextmanager
def told_that_it_opens() -> Iterator[None]:
    """Show at once that the command was heard: what the dashboard is made of takes a moment to load."""
    sys.stdout.write(OPENING)
    sys.stdout.flush()
    try:
        yield
    finally:
        sys.stdout.write(CLEAR_LINE)
        sys.stdout.flush()
