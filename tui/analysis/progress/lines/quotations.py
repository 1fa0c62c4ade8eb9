"""Tell a training from a log of one that somebody quotes, by what is printed around it.

A training prints one kind of line again and again, for as long as it runs. Who quotes it says something
first, shows a few lines at one moment, and says something else. So a kind of line that first appears after
something was said waits until it takes its time, is long, or counts on across what is said, in parts of the
same length, as a training that prints samples every so many steps.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from api_client.models.logs import NS_PER_S
from tui.analysis.bounded import Bounded
from tui.analysis.progress.lines.reading import ParsedMetrics, Told
from tui.analysis.progress.lines.template import Form


class _Held(NamedTuple):
    said: int
    """How often something was said before the line."""
    form: Form
    told: Told


class Quotations:
    """What replicas print after something was said."""

    def __init__(self) -> None:
        self.said: Bounded[str, int] = Bounded(1024, int)
        """How often something was said, by replica."""
        self._own: Bounded[tuple[str, ...], bool] = Bounded(256)
        """Kinds of lines that are no quotations."""
        self._held: Bounded[tuple[str, ...], list[_Held]] = Bounded(64, list)
        self._newest: deque[ParsedMetrics] = deque(maxlen=8)
        """Readings of the training."""

    def take(self, form: Form, told: Told) -> list[_Held]:
        """Return what is not quoted: this line, with those of its kind that were held before; or none."""
        line = _Held(self.said[told.replica], form, told)
        if not line.said or form.key in self._own:
            self._own[form.key] = True
            self._newest.append(told.reading)
            return [line]
        beside = [each for each in self._newest if (each.step is None) == (told.reading.step is None)]
        if beside and _follows(beside, told.reading):
            return [line]  # as an evaluation at the step that the training has reached
        held = self._held[told.replica, *form.key]
        if not _follows([each.told.reading for each in held], told.reading) or _is_again(held, line):
            held.clear()
        held.append(line)
        if not _goes_on(held):
            return []
        self._own[form.key] = True
        self._newest.append(told.reading)
        return self._held.pop((told.replica, *form.key))


def _follows(readings: Iterable[ParsedMetrics], reading: ParsedMetrics) -> bool:
    """Return True if a count is where others have come to, or as far from there as they have moved."""
    counts = [each.counted or 0.0 for each in (*readings, reading)]
    *moves, move = (0.0, *(after - before for before, after in pairwise(counts)))
    return 0 <= move <= 2 * (max(moves, default=0.0) or math.inf)


def _is_again(held: list[_Held], line: _Held) -> bool:
    """Return True if a count is quoted again below something else that is said."""
    before = next(reversed(held), line)
    return before.said < line.said and before.told.reading.counted == line.told.reading.counted


def _goes_on(held: list[_Held]) -> bool:
    """Return True if lines are too many or too slow for a quotation, or go on in parts of the same length."""
    begun_ns = next(each.told.at_ns for each in held if each.said == held[-1].said)
    is_slow = held[-1].told.at_ns - begun_ns > 10 * NS_PER_S
    *complete, _ = Counter(each.said for each in held).values()
    return len(held) > 16 or is_slow or (len(complete) > 1 and len({*complete}) == 1)
