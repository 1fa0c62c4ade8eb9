"""Detect a curve that got worse: a loss or an evaluation that rises, a reward that falls.

A curve is compared with the best level that it has reached. It has not got worse if it is coming back, or
came back from a similar change before: batches that are sorted by length raise a loss again and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from tui.analysis.health.watched import ASIDE_S, LONGER, Watched
from tui.analysis.health.windows import holds_since, level_between, noise_of
from tui.analysis.series import Series, values_between
from tui.text.units import number

NEWEST = 5
"""Number of values from which a change of a noisy curve shows."""

_ERRORS = 6.0  # A change must exceed this many standard errors.
_LEVELS = 100  # Maximum number of levels that show the rises and falls of a whole curve.
_PARTS = 20  # The best level is that of the best of this many parts.
_PART = 0.1  # A curve comes back once this share of the change is gone, and grows if it adds as much.


@dataclass(frozen=True, slots=True)
class Worse:
    """A curve that is worse than its best level, as values of which lower ones are better."""

    now: float
    best: float
    since: float
    values: Sequence[float]
    after: Sequence[float]
    """The values since it got worse."""
    grows: bool
    """True if it has got worse and worse since then."""
    has_lost_all: bool
    """True if it had clearly become better than its first values, and is about as bad as these again."""

    @property
    def words(self) -> str:
        """Both levels; those of the log, unless the curve was negated."""
        return f"{number(self.now)}, was {number(self.best)}"

    def is_beyond(self, share: float) -> bool:
        """Return True if it is worse by that share of its best level."""
        return self.now > self.best + share * abs(self.best)


def worsened(
    series: Series,
    by: float,
    *,
    newest: int = NEWEST,
    earlier: int = 6 * NEWEST,
    descends: bool = True,
    held: bool = False,
) -> Worse | None:
    """Return how a curve is worse than its best level, by the share ``by`` and beyond its noise; else None.

    At least the last ``newest`` values must show it, more if they are noisy, and ``earlier`` values must
    precede them. If the curve ``descends`` by design, as a loss does, its high beginning is not a change that
    it came back from.
    """
    values = values_between(series)
    # The noise of the logarithms, since single losses of diffusion models may differ by a factor of ten.
    noise = noise_of([math.log(value) for value in values if value > 0])
    count = max(newest, math.ceil((_ERRORS * noise / math.log(2.5)) ** 2))
    if len(values) < count + max(1, earlier):
        return None
    now, before = median(values[-count:]), values[:-count]
    parts = sorted(level_between(before, max(1, min(_PARTS, len(before) // count))))
    best = parts[1 if len(parts) >= 10 else 0]  # one of many parts is better by chance
    errors = _ERRORS / 2 if held else _ERRORS
    least = max(by, math.exp(errors * noise / math.sqrt(count)) - 1)
    error = errors * noise_of(before) / math.sqrt(count)
    if now <= best + max(least * abs(best), error):
        return None
    # A loss rises gradually: it begins to be worse after a fifth of the rise, or where it exceeds the noise.
    begun = max(0.2 * (now - best), 3.0 * noise_of(before)) if descends else by * abs(best)
    level = best + min(begun, 0.5 * (now - best))
    since = holds_since(series, lambda value: value > level, forgiven=newest // 2) or series.times[-1]
    after = values_between(series, since) or values[-1:]  # the newest may be NaN
    thirds = level_between(after, 3)
    comes_back = thirds[-1] < max(thirds) - _PART * (max(thirds) - best)
    is_back = comes_back or len(after) < newest or _has_come_back(values, newest, best, descends)
    if is_back and not held:
        return None
    growth = max(_ERRORS * noise_of(values) / math.sqrt(len(after) / 3), _PART * (thirds[-1] - best))
    # With fewer values, a jump looks like growth, since some of them precede the jump.
    grows = len(after) >= 3 * newest and thirds == sorted(thirds) and thirds[-1] > thirds[0] + growth
    first = median(values[:NEWEST])
    has_lost_all = first > best + error and now > first - _PART * (first - best)
    return Worse(now, best, since, values, after, grows, has_lost_all)


def _has_come_back(values: Sequence[float], newest: int, best: float, descends: bool) -> bool:
    """Return True if a curve came back from a change as large and long as its last one, or nearly."""
    levels = level_between(values, min(_LEVELS, len(values) // newest)) if descends else values
    height = levels[-1] - best
    parts = groupby(levels, lambda level: level > best + height / 2)
    hills = [list(part) for is_hill, part in parts if is_hill]
    if descends and hills and levels[0] == hills[0][0]:
        del hills[0]
    # A spike does not excuse a lasting rise of a loss, but a low speed for a while is normal for this run.
    least_long = len(hills[-1]) / LONGER if descends and hills else newest
    least_high = best + (height - 2.0 * noise_of(levels)) / LONGER
    return any(len(hill) >= least_long and max(hill) >= least_high for hill in hills[:-1])


def grown_gradients(run: Watched, since: float) -> str:
    """Return in words how the gradients became three times as large as usual; empty if they did not."""
    norms = run.of_attempt(run.progress.grad_norm_series)
    usual = values_between(norms, end=since)
    later = values_between(norms, since - ASIDE_S)
    lasting = (median(later[first : first + NEWEST]) for first in range(len(later) - NEWEST + 1))
    peak = max(lasting, default=0.0)
    grew = bool(usual) and peak > 3.0 * median(usual)
    return f"gradients grew from {number(median(usual))} to {number(peak)}" if grew else ""
