"""Which lines of a log a command shows: by node, by level, by a pattern, with lines around them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api_client.streams.records import LogEntry, LogGap, LogLine
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.known_names import no_such
from tui.insight.logs.levels import RANKS, rank_of

if TYPE_CHECKING:
    from api_client.models import TrainingJob

NO_NODE = "-"
"""Stands for lines without a node, as the text output shows them."""

_LAST_NUMBER = re.compile(r"(\d{1,9})\D{0,9}$")


@dataclass(frozen=True, slots=True)
class Shown:
    """An entry to be printed: a match, a line around one (``is_context``), or a gap.

    ``after_skipped``: lines were left out before it, in a listing with context.
    """

    entry: LogEntry
    is_context: bool = False
    after_skipped: bool = False


class LineFilter:
    """Takes entries one after the other, in either direction of time, and gives those to be printed.

    ``is_chosen`` tells which lines are there at all; of these, ``min_level`` and ``matches`` choose
    the matches. A line without a level counts as INFO, as ordinary output does. Gaps always pass.
    """

    def __init__(
        self,
        *,
        is_chosen: Callable[[str | None], bool] | None = None,
        min_level: str | None = None,
        matches: Callable[[str], bool] | None = None,
        invert: bool = False,
        context_lines: int = 0,
    ) -> None:
        self._is_chosen = is_chosen or NodeChooser()
        self._min_rank = RANKS[min_level] if min_level else None
        self._matches = matches
        self._invert = invert
        self._context_lines = context_lines
        self._before: deque[LogLine] = deque(maxlen=context_lines)
        self._after = 0
        self._has_skipped = False
        self._has_shown = False

    @property
    def is_open(self) -> bool:
        """Whether lines after the last match are still wanted."""
        return self._after > 0

    def take(self, entry: LogEntry) -> list[Shown]:
        """What is to be printed now, the entry itself last, if at all."""
        if isinstance(entry, LogGap):
            return [Shown(entry)]
        if not self._is_chosen(entry.replica):
            return []
        if self._is_match(entry):
            lines = [*self._before, entry]
            self._before.clear()
            shown = [Shown(line, is_context=line is not entry) for line in lines]
            if self._has_skipped and self._has_shown and self._context_lines:
                shown[0] = Shown(lines[0], shown[0].is_context, after_skipped=True)
            self._has_skipped, self._has_shown = False, True
            self._after = self._context_lines
            return shown
        if self._after:
            self._after -= 1
            return [Shown(entry, is_context=True)]
        if self._context_lines and len(self._before) < self._context_lines:
            self._before.append(entry)
            return []
        self._has_skipped = True
        self._before.append(entry)
        return []

    def take_around(self, entry: LogEntry) -> list[Shown]:
        """As ``take``, but for what stands around the last match alone: no more matches are wanted."""
        if isinstance(entry, LogGap) or not self._is_chosen(entry.replica):
            return []
        self._after -= 1
        return [Shown(entry, is_context=True)]

    def _is_match(self, line: LogLine) -> bool:
        if self._min_rank is not None and rank_of(line.message, line.level) < self._min_rank:
            return False
        return self._matches is None or self._matches(line.message) is not self._invert


class NodeChooser:
    """Called with a line's node, tells whether it is one of those named: by its whole name, or its number.

    How a training job names its nodes is not published, so ``2`` finds ``2``, ``node-2`` and ``g00r2``.
    Without names every line is chosen. Remembers which nodes it has seen.
    """

    def __init__(self, nodes: Sequence[str] = ()) -> None:
        self._nodes = tuple(dict.fromkeys(nodes))
        self._numbers = {int(name) for name in nodes if _is_number(name)}
        self._known: dict[str | None, bool] = {}

    def __call__(self, replica: str | None) -> bool:
        """Return True if the node is chosen; None is that of lines without one."""
        if replica not in self._known:
            name = replica or NO_NODE
            chosen = name in self._nodes or _number_of(name) in self._numbers
            self._known[replica] = chosen or not self._nodes
        return self._known[replica]

    def check(self, job: TrainingJob) -> None:
        """Raise CommandFailed for a name that no node seen so far has, nor any other of the job can have.

        Nodes are numbered from 0, so a number below the job's count of nodes is one that was silent.
        """
        if not self._nodes or not self._known:
            return
        seen = [replica or NO_NODE for replica in self._known]
        numbers = {_number_of(name) for name in seen} | set(range(job.node_count or 0))
        for name in self._nodes:
            if name not in seen and not (_is_number(name) and int(name) in numbers):
                raise CommandFailed(f"job {job.id} has {no_such('node', name, seen)}", ExitCode.NOT_FOUND)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _number_of(name: str) -> int | None:
    number = _LAST_NUMBER.search(name)
    return int(number[1]) if number else None
