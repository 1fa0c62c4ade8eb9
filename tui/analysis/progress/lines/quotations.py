"""Tell a training from a log of one that somebody quotes, by what is printed around it.

A training prints one kind of line again and again. Who quotes it says something first, shows a few lines, and
says something else. So a kind of line that first appears right below something said waits: until it appears
elsewhere, is long, takes its time, or its count has risen across what is said, as beside samples of a model.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import NamedTuple

from api_client.models.logs import NS_PER_S
from tui.analysis.bounded import Bounded
from tui.analysis.progress.lines.reading import ParsedMetrics, Told
from tui.analysis.progress.lines.template import Form

BESIDE_LINES = 5
"""Lines from what is said, or from a quoted line, to the next quoted one, such as a fence or a header."""


class _Held(NamedTuple):
    below: int
    """The number of the last thing said before the line."""
    form: Form
    told: Told


class Quotations:
    """What replicas print next to what is said."""

    def __init__(self) -> None:
        self.lines_left: Bounded[str, int] = Bounded(64)
        """The replicas whose newest line is next to something said, and how many more lines are."""
        self._said = 0
        self._own: Bounded[tuple[str, ...], bool] = Bounded(256)
        """Kinds of lines that are no quotations."""
        self._held: Bounded[tuple[str, ...], list[_Held]] = Bounded(64, list)
        self._newest: deque[ParsedMetrics] = deque(maxlen=8)
        """Readings of the training."""

    def hear(self, replica: str, *, is_said: bool) -> None:
        """Count a line that somebody may have said."""
        self._said += is_said
        lines_left = BESIDE_LINES if is_said else self.lines_left.pop(replica, 0) - 1
        if lines_left > 0:
            self.lines_left[replica] = lines_left

    def take(self, form: Form, told: Told) -> list[_Held]:
        """Return what is not quoted: this line, with those of its kind that were held before; or none."""
        line = _Held(self._said, form, told)
        if form.key in self._own:
            self._newest.append(told.reading)
            return [line]
        held = self._held[told.replica, *form.key]
        held.append(line)
        if told.replica in self.lines_left and not self._is_next(told.reading) and not _goes_on(held):
            self.lines_left[told.replica] = BESIDE_LINES
            return []
        self._own[form.key] = True
        self._newest.append(told.reading)
        return self._held.pop((told.replica, *form.key))

    def _is_next(self, reading: ParsedMetrics) -> bool:
        """Return True if a line counts what the training has reached, or will next, as an evaluation does."""
        counts = [
            each.counted or 0.0 for each in self._newest if (each.step is None) == (reading.step is None)
        ]
        move = max((after - before for before, after in pairwise(counts)), default=0.0)
        return bool(counts) and 0 <= (reading.counted or 0.0) - counts[-1] <= 2 * move


def _goes_on(held: list[_Held]) -> bool:
    """Return True if lines are too many or too slow for a quotation, or count on across what is said."""
    counts = [each.told.reading.counted or 0.0 for each in held]
    is_rising = all(before < after for before, after in pairwise(counts))
    is_slow = any(
        after.below == before.below and after.told.at_ns - before.told.at_ns > 10 * NS_PER_S
        for before, after in pairwise(held)
    )
    return len(held) > 16 or is_slow or (is_rising and len({each.below for each in held}) > 2)
