"""Ask before actions that cannot be undone, and check that there is a terminal to ask on."""

from __future__ import annotations

import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import click

from tui.commands.support.output import CommandFailed, ExitCode
from tui.text.sanitize import sanitize

NON_INTERACTIVE = "bt-tui.non-interactive"
"""Key in the click context for ``--non-interactive``."""


def can_ask() -> bool:
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(NON_INTERACTIVE):
        return False
    return sys.stdin.isatty() and sys.stderr.isatty()


def terminal_cells() -> int:
    return max(30, shutil.get_terminal_size().columns)


def wrapped(text: str, *, indent: str = "") -> str:
    """Break lines between words: a terminal would break them within words."""
    return textwrap.fill(
        sanitize(text),
        terminal_cells() - 1,
        initial_indent=indent,
        subsequent_indent=indent,
        drop_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


@contextmanager
def interruptible_prompt() -> Iterator[None]:
    """Make ctrl-c raise KeyboardInterrupt in the block, which asyncio's SIGINT handler would delay."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def confirm(question: str, *, assume_yes: bool) -> None:
    """Return if the user agrees or ``assume_yes`` is set.

    Raises CommandFailed if the session is not interactive, and click.Abort if the user declines.
    """
    if assume_yes:
        return
    if not can_ask():
        raise CommandFailed(f"{question} (no terminal to ask on; give --yes)", ExitCode.USAGE)
    with interruptible_prompt():
        click.confirm(sanitize(question), abort=True, err=True)


def need_terminal(
    program: str = "the dashboard", advice: str = "bt-tui top, jobs, job and logs need none"
) -> None:
    """Raise CommandFailed if standard input or output is redirected."""
    streams = {"input": sys.stdin, "output": sys.stdout}
    redirected_streams = [name for name, stream in streams.items() if not stream.isatty()]
    if redirected_streams:
        raise CommandFailed(
            f"{program} needs a terminal, but standard {' and '.join(redirected_streams)} "
            f"{'are' if len(redirected_streams) > 1 else 'is'} redirected; {advice}",
            ExitCode.USAGE,
        )


def piped_text(max_characters: int) -> str:
    """Read at most ``max_characters`` from stdin. Raises CommandFailed for bytes that are not UTF-8."""
    try:
        text = sys.stdin.read(max_characters)
        text.encode()  # in some locales Python decodes invalid bytes as surrogates
    except UnicodeError:
        raise CommandFailed("standard input is not UTF-8", ExitCode.USAGE) from None
    return text


@contextmanager
def opening_notice() -> Iterator[None]:
    """Show "opening" while the body of the ``with`` statement imports the dashboard.

    Raises CommandFailed if there is no terminal.
    """
    need_terminal()
    from tui.commands.support.progress_line import ProgressLine  # slow: imports asyncio

    with ProgressLine(sys.stdout) as line:
        line.show("bt-tui: opening")
        yield
