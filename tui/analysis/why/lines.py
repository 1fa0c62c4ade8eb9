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

_PATTERN_CHARACTERS = 240
_NUMBER_PATTERN = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|\d[\d.,:]*(?:e[+-]?\d+)?")
_MIN_REPETITIONS = 3
"""An ordinary line, unlike a warning, must be repeated this often to be evidence about its node."""


def displayed_text(line: LogLine) -> str:
    """Return the message's excerpt as a terminal would display it, without escape sequences."""
    return strip_ansi(last_carriage_segment(excerpt(line.message))).rstrip()


def line_pattern(text: str) -> str:
    """Return the text with ``#`` for each number, so that all lines of one print statement become equal."""
    return _NUMBER_PATTERN.sub("#", text[:_PATTERN_CHARACTERS])


def is_warning(line: LogLine) -> bool:
    """Return True for warnings and errors."""
    return _severity_rank(line) >= RANKS["WARNING"]


def _severity_rank(line: LogLine) -> int:
    return RANKS[level_of(line.message, line.level)]


def grouped(lines: Iterable[LogLine]) -> list[Clue]:
    """Return a clue for each node and line pattern, with its newest text, in order of first appearance."""
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
    """Return the lines that only this node logs: warnings and errors, then other lines, most frequent first.

    Empty if no other node logs, since there is nothing to compare with.
    """
    clues = grouped(lines)
    other_patterns = {line_pattern(clue.text) for clue in clues if clue.node != node}
    if not other_patterns:
        return ()
    own_clues = [
        clue
        for clue in clues
        if clue.node == node
        and line_pattern(clue.text) not in other_patterns
        and (clue.is_warning or clue.count >= _MIN_REPETITIONS)
        and progress_bar(clue.text) is None
    ]
    own_clues.sort(key=lambda clue: (not clue.is_warning, -clue.count))
    return tuple(own_clues[:limit])


def warnings(lines: Iterable[LogLine], *, limit: int) -> tuple[Clue, ...]:
    """Return the errors of all nodes, then the warnings; the most frequent first in each group."""
    ranked = [(line, _severity_rank(line)) for line in lines if is_warning(line)]
    errors = {line_pattern(displayed_text(line).strip()) for line, rank in ranked if rank >= RANKS["ERROR"]}
    clues = grouped(line for line, _ in ranked)
    clues.sort(key=lambda clue: (line_pattern(clue.text) not in errors, -clue.count))
    return tuple(clues[:limit])


def last_lines(lines: Iterable[LogLine], *, limit: int) -> tuple[Clue, ...]:
    """Return the newest line of each node, sorted by time."""
    newest_by_node: dict[str | None, Clue] = {}
    for line in lines:
        if text := displayed_text(line).strip():
            newest_by_node[line.replica] = Clue(
                text, line.timestamp_ns, line.replica, is_warning=is_warning(line)
            )
    return tuple(sorted(newest_by_node.values(), key=lambda clue: clue.at_ns)[:limit])
