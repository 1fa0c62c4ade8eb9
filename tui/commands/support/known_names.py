"""Formats the error for an unknown name, with the names that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from tui.text.names import natural_key
from tui.text.sanitize import clip, inert

MOST_NAMES = 12
LONGEST_NAME_CELLS = 60
SHORTEST_RANGE = 4
"""Minimum number of names shown as a range; fewer are listed individually."""

_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>0|[1-9][0-9]{0,8})(?P<after>[^0-9]*)", re.DOTALL)


def known_names(names: Iterable[str]) -> str:
    """List names in natural order: ``a, b and 7 more``, or ``node-0 to node-63`` for an unbroken range."""
    found = sorted(set(names), key=natural_key)
    if not found:
        return "none"
    if len(found) >= SHORTEST_RANGE and _is_range(found):
        return f"{_shown(found[0])} to {_shown(found[-1])}"
    more = f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
    return ", ".join(map(_shown, found[:MOST_NAMES])) + more


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """Return ``no checkpoint 'x' (it has: a, b)``; the caller adds the subject."""
    return f"no {what} {_shown(name)!r} (it has: {known_names(known)})"


def unknown_value(what: str, typed: str, known: Iterable[str]) -> str:
    """Return ``unknown status 'runing', did you mean running? known: …``; names keep the given order."""
    names = list(known)
    close = get_close_matches(typed.lower(), names, n=1)
    hint = f", did you mean {_shown(close[0])}?" if close else ";"
    return f"unknown {what} {_shown(typed)!r}{hint} known: {', '.join(map(_shown, names))}"


def _shown(name: str) -> str:
    return clip(inert(name), LONGEST_NAME_CELLS)


def _is_range(names: list[str]) -> bool:
    parts = [_NUMBERED.fullmatch(name) for name in names]
    frames = {(part["before"], part["after"]) for part in parts if part}
    numbers = [int(part["number"]) for part in parts if part]
    if len(numbers) < len(names) or len(frames) > 1:
        return False
    return numbers == list(range(numbers[0], numbers[-1] + 1))
