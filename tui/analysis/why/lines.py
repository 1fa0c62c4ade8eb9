"""Group log lines that differ only in their numbers, and compare the lines of the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from api_client.models.logs import LogLine
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.logs.levels import RANKS, level_of
from tui.analysis.logs.repeats import progress_bar
from tui.analysis.why.explanation import Clue
from tui.text.sanitize import last_carriage_segment, strip_ansi

_SHAPE_CHARACTERS = 240
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|\d[\d.,:]*(?:e[+-]?\d+)?")
_OFTEN = 3
"""Minimum number of repetitions from which a line that is no warning is typical of a node."""


def displayed_text(line: LogLine) -> str:
    """Return the (excerpted) message as a terminal would display it, without escape sequences."""
    return strip_ansi(last_carriage_segment(excerpt(line.message))).rstrip()


def line_pattern(text: str) -> str:
    """Return the text with ``#`` for each number: lines that the same print statement writes become equal."""
    return _NUMBERS.sub("#", text[:_SHAPE_CHARACTERS])


def is_warning(line: LogLine) -> bool:
    """Return True for warnings and errors."""
    return _rank(line) >= RANKS["WARNING"]


def _rank(line: LogLine) -> int:
    return RANKS[level_of(line.message, line.level)]


def grouped(lines: Iterable[LogLine]) -> list[Clue]:
    """Return a clue for each node and line pattern, with the newest text; in order of first appearance."""
    clues: dict[tuple[str | None, str], Clue] = {}
    for line in lines:
        text = displayed_text(line).strip()
        if not text:
            continue
        key = (line.replica, line_pattern(text))
        count = clues[key].count + 1 if key in clues else 1
        clues[key] = Clue(text, line.timestamp_ns, line.replica, count, is_warning(line))
    return list(clues.values())


def only_on(lines: Iterable[LogLine], node: str, *, limit: int) -> tuple[Clue, ...]:
    """Return the lines that only this node logs: warnings and errors, then others; most frequent first.

    Empty if no other node logs, since there is nothing to compare with.
    """
    clues = grouped(lines)
    elsewhere = {line_pattern(clue.text) for clue in clues if clue.node != node}
    if not elsewhere:
        return ()
    only_here = [
        clue
        for clue in clues
        if clue.node == node
        and line_pattern(clue.text) not in elsewhere
        and (clue.is_warning or clue.count >= _OFTEN)
        and progress_bar(clue.text) is None
    ]
    only_here.sort(key=lambda clue: (not clue.is_warning, -clue.count))
    return tuple(only_here[:limit])


def warnings(lines: Iterable[LogLine], *, limit: int) -> tuple[Clue, ...]:
    """Return the errors of all nodes, then the warnings, the most frequent of each first."""
    ranked = [(line, _rank(line)) for line in lines if is_warning(line)]
    errors = {line_pattern(displayed_text(line).strip()) for line, rank in ranked if rank >= RANKS["ERROR"]}
    clues = grouped(line for line, _ in ranked)
    clues.sort(key=lambda clue: (line_pattern(clue.text) not in errors, -clue.count))
    return tuple(clues[:limit])


def last_lines(lines: Iterable[LogLine], *, limit: int) -> tuple[Clue, ...]:
    """Return the newest line of each node, sorted by time."""
    newest: dict[str | None, Clue] = {}
    for line in lines:
        if text := displayed_text(line).strip():
            newest[line.replica] = Clue(text, line.timestamp_ns, line.replica, is_warning=is_warning(line))
    return tuple(sorted(newest.values(), key=lambda clue: clue.at_ns)[:limit])
