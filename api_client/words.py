"""Phrases shared by the client and the dashboard."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

PROGRAM = "bt-tui"
READ_ONLY_OPTION = "--readonly"


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return ``1 file`` or ``1,204 files``; give ``plural`` if the plural does not just add an s."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def listed(names: Sequence[str], max_names: int) -> str:
    """Return ``a, b and 7 more``, with at most ``max_names`` names."""
    omitted_count = len(names) - max_names
    return ", ".join(names[:max_names]) + (f" and {omitted_count:,} more" if omitted_count > 0 else "")


def retrying_words(delay_s: float) -> str:
    """Return ``retrying in 3 s``, or ``retrying`` if the delay is shorter than half a second."""
    return f"retrying in {round(delay_s)} s" if round(delay_s) > 0 else "retrying"


def command_line(*arguments: str) -> str:
    """Return a command of this program to suggest, quoted for a shell.

    ``Remote.command_line`` also has the options that reach the same server.
    """
    return shlex.join((PROGRAM, *arguments))
