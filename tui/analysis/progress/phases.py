"""Other activities of a run than training (evaluating, saving), and its pauses.

Both are learned from the log: a pause that the run has recovered from before is no stall.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from dataclasses import dataclass

from tui.analysis.logs.excerpt import excerpt
from tui.analysis.pauses import recurring_pause
from tui.analysis.progress.announcements import MAX_CHARACTERS, RunPhaseKind
from tui.text.sanitize import last_carriage_segment

JOIN_S = 20.0
"""Lines that are closer together than this have no pause between them."""


class TimeRanges:
    """Ranges of activity, from times in any order; times closer together than ``join_s`` are in one range."""

    __slots__ = ("_join_s", "ends", "starts")

    def __init__(self, join_s: float = JOIN_S) -> None:
        self._join_s = join_s
        self.starts: list[float] = []
        self.ends: list[float] = []

    def add(self, time: float) -> bool:
        """Record activity at that time (seconds). Return True if the gaps may have changed."""
        starts, ends, join_s = self.starts, self.ends, self._join_s
        if ends and starts[-1] <= time <= ends[-1] + join_s:
            if time > ends[-1]:
                ends[-1] = time
            return False
        index = bisect_right(starts, time)
        if index and time <= ends[index - 1]:
            return False
        if index and time <= ends[index - 1] + join_s:
            index -= 1
            ends[index] = time
        elif index < len(starts) and time >= starts[index] - join_s:
            starts[index] = time
        else:
            starts.insert(index, time)
            ends.insert(index, time)
        if index + 1 < len(starts) and starts[index + 1] <= ends[index] + join_s:
            del starts[index + 1], ends[index]
        if len(starts) > 2000:
            del starts[0], ends[0]
        return True

    def longest_pause(self, since: float) -> float | None:
        """Return the longest pause since a time that is likely to recur; None if there was none."""
        first = max(1, bisect_right(self.starts, since))
        return recurring_pause(
            start - end for start, end in zip(self.starts[first:], self.ends[first - 1 :], strict=False)
        )


@dataclass(frozen=True, slots=True)
class RunPhase:
    """The newest activity besides training since the last step, with the times (epoch s) of its lines.

    If several follow each other too closely to be separated, it begins with the last step. ``first`` is
    True if no earlier activity of this kind has interrupted the run's steps.
    """

    kind: RunPhaseKind
    since: float
    newest: float
    first: bool


class RunPhases:
    """Time ranges of such activities, from lines in any order."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: dict[RunPhaseKind, TimeRanges] = {}

    def add(self, kind: RunPhaseKind, time: float) -> None:
        """Record a line about an activity at that time (epoch s)."""
        self._ranges.setdefault(kind, TimeRanges(join_s=300.0)).add(time)

    def newest(self, *kinds: RunPhaseKind) -> float | None:
        """Return the time of the newest line that announced something, or one of these activities."""
        chosen = (ranges.ends[-1] for kind, ranges in self._ranges.items() if not kinds or kind in kinds)
        return max(chosen, default=None)

    def since(self, first_step_at: float, last_step_at: float) -> RunPhase | None:
        """Return the newest activity that lasts beyond the last step; None if there is none."""
        # The announcing line may precede the line of its step.
        from_s = last_step_at - 30.0
        phases: list[RunPhase] = []
        for kind, ranges in self._ranges.items():
            start, end = ranges.starts[-1], ranges.ends[-1]
            if kind == "loading" or end < from_s:
                continue
            has_earlier = len(ranges.ends) > 1 and ranges.ends[-2] >= first_step_at
            if start < from_s:  # steps continued since then, so several activities have been joined
                has_earlier |= start >= first_step_at
                start = last_step_at
            phases.append(RunPhase(kind, start, max(start, end), not has_earlier))
        return max(phases, key=lambda phase: phase.newest, default=None)


_COUNT = re.compile(
    r"(\d[\d,]{0,23}+(?:\.\d{1,12})?+)\s?[kMGT]?i?B?\s?(?:/|of)\s?(\d[\d,]{0,23}+(?:\.\d{1,12})?+)"
    r"(?![\w/:-]{0,40}\d[:-]|(?<=\b\d\d/\d\d)(?:/\d{2,4})? \d\d:\d\d:)"  # not a date
)
_DIGITS = re.compile(r"[\d.%|█▏▎▍▌▋▊▉ ]+")


class MovingCounts:
    """Counts such as ``412/5000`` in lines about other work than steps, and when one of them last moved."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, float], list[tuple[float, float]]] = {}

    def read(self, time: float, source: str, message: str) -> bool:
        """Read a line, in any order; return True if it has a count."""
        if "/" not in message and " of " not in message:
            return False
        message = last_carriage_segment(excerpt(message))[:MAX_CHARACTERS]
        match = _COUNT.search(message)
        if match is not None:
            done, total = (float(number.replace(",", "")) for number in match.groups())
            self.add(time, source, _DIGITS.sub(" ", message[: match.start()]), done, total)
        return match is not None

    def add(self, time: float, source: str, name: str, done: float, total: float) -> None:
        """Record a count, in any order."""
        key = (source, name, total)
        if len(self._counts) >= 256 and key not in self._counts:
            del self._counts[min(self._counts, key=lambda key: self._counts[key][-1])]
        counts = self._counts.setdefault(key, [])
        insort(counts, (time, done))
        del counts[:-16]

    @property
    def moved_at(self) -> float | None:
        """Time a count last rose twice in a row: one that rises and falls, as of workers, does not move."""
        times = (
            third[0]
            for counts in self._counts.values()
            for first, second, third in zip(counts, counts[1:], counts[2:], strict=False)
            if first[1] < second[1] < third[1]
        )
        return max(times, default=None)

    @property
    def finished_at(self) -> float | None:
        """Time a count that had moved last reached its total."""
        items = self._counts.items()
        return max(
            (counts[-1][0] for key, counts in items if counts[0][1] < counts[-1][1] >= key[2]), default=None
        )
