"""Detect a curve that got worse: a loss or an evaluation that rises, a reward that falls.

A curve is compared with the best level that it has reached. It does not count as worse if it is recovering,
or if it recovered from a similar change before: batches that are sorted by length raise a loss repeatedly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from tui.analysis.health.watched import ASIDE_S, LONGER, Watched
from tui.analysis.health.windows import holds_since, noise_of, segment_medians
from tui.analysis.series import Series, values_between
from tui.text.units import number

NEWEST = 5
"""Number of values that show a change of a noisy curve."""

_STANDARD_ERRORS = 6.0  # A change must exceed this many standard errors.
_MAX_LEVELS = 100  # Maximum number of segments to which a whole curve is reduced.
_SEGMENTS = 20  # Number of segments of the earlier values; the best level is the median of the best one.
# A curve is recovering once this fraction of the change is gone, and still growing if it has added as much.
_CLEAR_FRACTION = 0.1


@dataclass(frozen=True, slots=True)
class Worse:
    """A curve that is worse than its best level; lower values are better."""

    now: float
    """The median of the newest values."""
    best: float
    """The best level, a median."""
    since: float
    """When the curve got worse (epoch s)."""
    values: Sequence[float]
    """All values of the curve."""
    after: Sequence[float]
    """The values from ``since`` on."""
    grows: bool
    """True if the curve keeps getting worse: each third of ``after`` is worse than the third before."""
    has_lost_all: bool
    """True if the curve had clearly improved on its first values, and is about as bad as these again."""

    @property
    def words(self) -> str:
        """The current and the best level as text; both negated if the curve was."""
        return f"{number(self.now)}, was {number(self.best)}"

    def is_beyond(self, fraction: float) -> bool:
        """Return True if the curve is worse than its best level by more than this fraction of that level."""
        return self.now > self.best + fraction * abs(self.best)


def worsened(
    series: Series,
    min_change: float,
    *,
    newest: int = NEWEST,
    earlier: int = 6 * NEWEST,
    descends: bool = True,
    held: bool = False,
) -> Worse | None:
    """Return how a curve is worse than its best level; None unless the change exceeds two thresholds.

    These are ``min_change``, a fraction of the best level, and the noise of the curve. At least the last
    ``newest`` values must show the change, more if they are noisy, and ``earlier`` values must precede them.
    If the curve ``descends`` by design, as a loss does, its high beginning does not count as an earlier
    change that it recovered from. If ``held``, the change was found before: then half of the noise
    is enough, even while the curve recovers.
    """
    values = values_between(series)
    # The noise of the logarithms, since single losses of diffusion models may differ by a factor of ten.
    noise = noise_of([math.log(value) for value in values if value > 0])
    count = max(newest, math.ceil((_STANDARD_ERRORS * noise / math.log(2.5)) ** 2))
    if len(values) < count + max(1, earlier):
        return None
    now, before = median(values[-count:]), values[:-count]
    levels = sorted(segment_medians(before, max(1, min(_SEGMENTS, len(before) // count))))
    best = levels[1 if len(levels) >= 10 else 0]  # the very best of many segments is so by chance
    errors = _STANDARD_ERRORS / 2 if held else _STANDARD_ERRORS
    min_ratio = max(min_change, math.exp(errors * noise / math.sqrt(count)) - 1)
    margin = errors * noise_of(before) / math.sqrt(count)
    if now <= best + max(min_ratio * abs(best), margin):
        return None
    # A loss rises gradually: the onset is where it has risen by a fifth, or exceeds the noise.
    onset = max(0.2 * (now - best), 3.0 * noise_of(before)) if descends else min_change * abs(best)
    level = best + min(onset, 0.5 * (now - best))
    since = min(holds_since(series, lambda value: value > level, forgiven=newest // 2), series.times[-1])
    after = values_between(series, since) or values[-1:]  # the newest value may be NaN
    # The newest values may fall from a jump, while all values since the onset do not fall yet.
    newest_spans = (after[-3 * count :], after[-count:]) if descends else ()
    is_recovering = _falls(after, best) or any(_falls(span, best, noise_of(before)) for span in newest_spans)
    is_excused = is_recovering or len(after) < newest or _recovered_before(values, newest, best, descends)
    if is_excused and not held:
        return None
    thirds = segment_medians(after, 3)
    growth = max(
        _STANDARD_ERRORS * noise_of(values) / math.sqrt(len(after) / 3), _CLEAR_FRACTION * (thirds[-1] - best)
    )
    # With fewer values, a jump looks like growth, since some values precede the jump.
    grows = len(after) >= 3 * newest and thirds == sorted(thirds) and thirds[-1] > thirds[0] + growth
    # A curve that jumps, and mostly falls between the jumps, does not grow by itself: three standard errors.
    levels = segment_medians(after, 3 * _SEGMENTS)
    falling = sum(1 if later < earlier else -1 for earlier, later in pairwise(levels))
    grows = grows and falling < math.sqrt(3 * len(levels))
    first = median(values[:NEWEST])
    has_lost_all = first > best + margin and now > first - _CLEAR_FRACTION * (first - best)
    return Worse(now, best, since, values, after, grows, has_lost_all)


def _falls(values: Sequence[float], best: float, noise: float = 0.0) -> bool:
    """Return True if a curve is clearly on its way back to its best level."""
    thirds = segment_medians(values, 3)
    fallen = max(thirds) - thirds[-1]
    return fallen > max(
        _CLEAR_FRACTION * (max(thirds) - best), _STANDARD_ERRORS * noise / math.sqrt(len(values) / 3)
    )


def _recovered_before(values: Sequence[float], newest: int, best: float, descends: bool) -> bool:
    """Return True if a curve recovered before from a change about as large and long as the newest one."""
    levels = segment_medians(values, min(_MAX_LEVELS, len(values) // newest)) if descends else values
    height = levels[-1] - best
    groups = groupby(levels, lambda level: level > best + height / 2)
    hills = [list(group) for is_hill, group in groups if is_hill]
    if descends and hills and levels[0] == hills[0][0]:
        del hills[0]
    # A spike does not excuse a lasting rise of a loss. A speed that was low for a while may be so again.
    min_length = len(hills[-1]) / LONGER if descends and hills else newest
    min_height = best + (height - 2.0 * noise_of(levels)) / LONGER
    return any(len(hill) >= min_length and max(hill) >= min_height for hill in hills[:-1])


def grown_gradients(run: Watched, since: float) -> str:
    """Describe how gradient norms tripled around ``since``; empty if they did not."""
    norms = run.of_attempt(run.progress.grad_norm_series)
    usual = values_between(norms, end=since)
    later = values_between(norms, since - ASIDE_S)
    levels = (median(later[first : first + NEWEST]) for first in range(len(later) - NEWEST + 1))
    peak = max(levels, default=0.0)
    grew = bool(usual) and peak > 3.0 * median(usual)
    return f"gradients grew from {number(median(usual))} to {number(peak)}" if grew else ""
