"""Other activities of a run than training (evaluating, saving), and its pauses.

Both are learned from the log: a pause that the run has recovered from before is no stall.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Literal

from tui.analysis.logs.excerpt import excerpt
from tui.text.sanitize import last_carriage_segment

JOIN_S = 20.0
"""Times of activity closer together than this belong to the same active time range."""

SINGLE_PAUSE_S = 1800.0
"""A single longer pause is an accident, not a pattern."""

_MAX_STRETCHES = 2000


class Pauses:
    """Active time ranges, built from times of activity in any order; the gaps between them are pauses."""

    __slots__ = ("_ends", "_starts", "_version", "_worked_out")

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._version = 0
        self._worked_out: tuple[int, float, float | None] = (-1, 0.0, None)

    def add(self, time: float) -> bool:
        """Record activity at that time (seconds). Return True if a pause may have changed."""
        starts, ends = self._starts, self._ends
        if ends and starts[-1] <= time <= ends[-1] + JOIN_S:
            if time > ends[-1]:
                ends[-1] = time
            return False
        place = bisect_right(starts, time)
        if place and time <= ends[place - 1]:
            return False
        self._version += 1
        if place and time <= ends[place - 1] + JOIN_S:
            ends[place - 1] = max(ends[place - 1], time)
            place -= 1
        elif place < len(starts) and time >= starts[place] - JOIN_S:
            starts[place] = time
        else:
            starts.insert(place, time)
            ends.insert(place, time)
        if place + 1 < len(starts) and starts[place + 1] <= ends[place] + JOIN_S:
            ends[place] = max(ends[place], ends.pop(place + 1))
            starts.pop(place + 1)
        if len(starts) > _MAX_STRETCHES:
            del starts[0], ends[0]
        return True

    def longest(self, since: float) -> float | None:
        """Return the longest pause since a time that is likely to recur; None if there was none."""
        version, of, answer = self._worked_out
        if version == self._version and of == since:
            return answer
        first = max(1, bisect_right(self._starts, since))
        gaps = sorted(
            (self._starts[place] - self._ends[place - 1] for place in range(first, len(self._starts))),
            reverse=True,
        )
        answer = None
        if gaps:
            lone = gaps[0] > SINGLE_PAUSE_S and (len(gaps) < 2 or gaps[1] < gaps[0] / 2)
            answer = gaps[0] if not lone else (gaps[1] if len(gaps) > 1 else None)
        self._worked_out = (self._version, since, answer)
        return answer


RunPhaseKind = Literal["evaluation", "checkpoint", "other", "loading"]
"""``loading`` is expected only before the first step."""

JOIN_ASIDES_S = 300.0
"""Lines about the same kind of activity that are closer than this belong to one time range."""

MAX_TIME_RANGES = 200
"""Number of newest time ranges kept per kind."""

MAX_CHARACTERS = 1024
BEFORE_ITS_STEP_S = 30.0
"""The announcing line may precede the line of its step by this much."""

# These match lowercase text and start with a lookahead for their first character, which is several times
# faster.
_HINTS = (
    *("valuat", " eval", "'eval", "alidat", "nference"),
    *("oading", "nitiali", "okenizing"),
    *("ompil", "apturing", "ploading", "ushing", "erging", "enerating", "onsolidat"),
)
_EVALUATION = re.compile(
    r"\*\*\* running (?:evaluation|prediction|validation)\b"
    r"|(?=[rsbepdl])\b(?:running|start(?:ing|s|ed)?|begin(?:ning)?|enter(?:ing)?|perform(?:ing)?|doing"
    r"|launching) "
    r"(?:the |an? |full |final |next |online |offline |model |training |lm |downstream |in-loop )*"
    r"(?:evaluations?|validations?|evals?|inference)\b"
    r"|\bstarted: 'eval"
    r"|^\W{0,8}(?:\[[^\]]{1,60}\]\W{0,3}){0,4}(?:evaluating|validating)\b"
    r"|(?=[ev])\b(?:evaluating|validating|evaluation|validation)\b"
    r"(?:[^%]{0,60}\d{1,3}%\||(?<=ing) (?:the |on |at |model|checkpoint|epoch|step|policy))"
)
_OTHER = re.compile(
    r"(?=[cupmg])\b(?:compiling|capturing (?:the )?(?:cuda )?graphs?|uploading|pushing\b.{1,60}\bhub"
    r"|consolidating|merging (?:lora|weights|adapter|model|shard)"
    r"|generating (?:samples?|completions?|rollouts?|responses?|images?))\b"
)
_LOADING = re.compile(r"\b(?:(?:down|pre|re)?loading|initiali[sz]ing|tokenizing)\b")
_NO_BEGINNING = re.compile(
    r"(?=[esdfctanwo])\b(?:every|skip\w*|disabled|finished|done|completed?|took|ended|after each|will be"
    r"|strategy|not|no|without|failed|error)\b|(?:evaluation|eval)_strategy|(?<!pid)(?<!ip)=\w"
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


def announces_phase(message: str) -> RunPhaseKind | None:
    """Return the activity that a line announces; None for other lines. Saves are parsed elsewhere."""
    head = message[:MAX_CHARACTERS].lower()
    for hint in _HINTS:
        if hint in head:
            break
    else:
        return None
    found: tuple[tuple[re.Pattern[str], RunPhaseKind], ...] = (
        (_EVALUATION, "evaluation"),
        (_OTHER, "other"),
        (_LOADING, "loading"),
    )
    for pattern, kind in found:
        match = pattern.search(head)
        if match is not None:
            clause = head[max(head.rfind(mark, 0, match.start()) for mark in (", ", "; ", "! ")) + 1 :]
            return None if _NO_BEGINNING.search(clause) else kind
    return None


_SAVE_EVERY = re.compile(
    r"(?<![\w-])(?:save|saving|checkpoint|ckpt)[\w ]{0,24}?(?:steps|interval|every|freq(?:uency)?)[\w ]{0,12}"
    r"[\"']?\s?[:=\s]\s?(\d{2,7})\b(?!\s?(?:s\b|sec|min|h\b|hour|epoch|[%.]))"
)


def announced_save_interval(message: str) -> int | None:
    """Return the steps between saves, if a line is about the settings: ``save_steps=500``."""
    if "sav" not in message and "ckpt" not in message and "checkpoint" not in message:
        return None
    found = _SAVE_EVERY.search(message.lower()[:MAX_CHARACTERS])
    return int(found[1]) if found is not None else None


_COUNT = re.compile(
    r"(\d[\d,]{0,23}+(?:\.\d{1,12})?+)\s?[kMGT]?i?B?\s?(?:/|of)\s?(\d[\d,]{0,23}+(?:\.\d{1,12})?+)"
    r"(?![\w/:-]{0,40}\d[:-]|(?<=\b\d\d/\d\d)(?:/\d{2,4})? \d\d:\d\d:)"  # not a date
)
_DIGITS = re.compile(r"[\d.%|█▏▎▍▌▋▊▉ ]+")
_MAX_COUNTS, _NEWEST_COUNTS = 256, 16


class MovingCounts:
    """Counts such as ``412/5000`` in lines about other work than steps, and when one of them last moved."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, float], list[tuple[float, float]]] = {}

    def take(self, time: float, source: str, message: str) -> bool:
        """Read a line, in any order; return True if it has a count."""
        if "/" not in message and " of " not in message:
            return False
        message = last_carriage_segment(excerpt(message))
        found = _COUNT.search(message[:MAX_CHARACTERS])
        if found is None:
            return False
        done, total = (float(number.replace(",", "")) for number in found.groups())
        self.count(time, source, _DIGITS.sub(" ", message[: found.start()]), done, total)
        return True

    def count(self, time: float, source: str, name: str, done: float, total: float) -> None:
        key = (source, name, total)
        if len(self._counts) >= _MAX_COUNTS and key not in self._counts:
            del self._counts[min(self._counts, key=lambda one: self._counts[one][-1])]
        counts = self._counts.setdefault(key, [])
        insort(counts, (time, done))
        if len(counts) > _NEWEST_COUNTS:
            del counts[0]

    @property
    def moved_at(self) -> float | None:
        """Time a count last rose twice in a row: one that rises and falls, as of workers, does not move."""
        return max(
            (
                third[0]
                for counts in self._counts.values()
                for first, second, third in zip(counts, counts[1:], counts[2:], strict=False)
                if first[1] < second[1] < third[1]
            ),
            default=None,
        )

    @property
    def finished_at(self) -> float | None:
        """Time a count that had moved last reached its total."""
        items = self._counts.items()
        ended = (counts[-1][0] for key, counts in items if counts[0][1] < counts[-1][1] >= key[2])
        return max(ended, default=None)


class RunPhases:
    """Time ranges of such activities, from lines in any order."""

    __slots__ = ("_time_ranges",)

    def __init__(self) -> None:
        self._time_ranges: dict[RunPhaseKind, list[tuple[float, float]]] = {}

    def keep(self, kind: RunPhaseKind, time: float) -> bool:
        """Record a line about an activity at that time (epoch s). Return True if that changed anything."""
        stretches = self._time_ranges.setdefault(kind, [])
        joined = (time, time)
        for stretch in [one for one in stretches if one[0] - JOIN_ASIDES_S <= time <= one[1] + JOIN_ASIDES_S]:
            if stretch[0] <= time <= stretch[1]:
                return False
            stretches.remove(stretch)
            joined = (min(joined[0], stretch[0]), max(joined[1], stretch[1]))
        insort(stretches, joined)
        del stretches[:-MAX_TIME_RANGES]
        return True

    def newest(self, kind: RunPhaseKind | None = None) -> float | None:
        """Return the time of the newest line that announced something, or this kind of activity."""
        ranges = self._time_ranges
        return max((ranges[one][-1][1] for one in ranges if kind in (None, one)), default=None)

    def since(self, first_step_at: float | None, last_step_at: float | None) -> RunPhase | None:
        """Return the newest activity that lasts beyond the last step; None if there is none, or no step."""
        if last_step_at is None:
            return None
        begun = -math.inf if first_step_at is None else first_step_at
        found: RunPhase | None = None
        for kind, stretches in self._time_ranges.items():
            begin, newest = stretches[-1]
            if kind == "loading":
                continue
            if newest < last_step_at - BEFORE_ITS_STEP_S or (found is not None and newest < found.newest):
                continue
            earlier = any(end >= begun for _, end in stretches[:-1])
            # Steps continued since then, so several activities have been joined.
            if begin < last_step_at - BEFORE_ITS_STEP_S:
                earlier |= begin >= begun
                begin = last_step_at
            found = RunPhase(kind, begin, max(begin, newest), not earlier)
        return found
