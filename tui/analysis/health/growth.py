"""Growth of memory and storage, and when they are full.

Caches that are collected and checkpoints that are pruned make a sawtooth. So growth counts only above the
level from which the same series fell back before.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import linear_regression, median
from typing import NamedTuple

from tui.analysis.health.watched import HOUR_S, MINUTE_S, Watched
from tui.analysis.health.windows import means_of_parts
from tui.analysis.series import Series, mean_between

_PARTS, _STEADY = 4, 0.4
"""Each of so many parts of a window must grow by this share of the average: a burst grows in one only."""


class Forecast(NamedTuple):
    """Significant growth per second, the time until the limit, and since when it grows (epoch s)."""

    rate: float
    full_in_s: float
    since: float


def forecast(
    run: Watched,
    series: Series,
    limit: float,
    *,
    window_s: float,
    growth: float,
    full_within_s: float,
    held: bool,
    used: float = 0.0,
) -> Forecast | None:
    """Return when a series that grows steadily reaches its limit, None unless that matters.

    It matters if it grows by ``growth`` of the limit in a window and reaches that within ``full_within_s``.
    ``used`` is its newest value; without it, the level of its growth counts. While a model loads or is
    downloaded, memory and disks fill without meaning anything.
    """
    at = run.metrics.at or 0.0
    line = _steady_growth(series, at, window_s) if limit else None
    if line is None or at - window_s < run.growth_since:
        return None
    rate, level = line
    used = used or level
    # Growth matters from the first share of the limit on; above the second, this long before it is full, or
    # once it lasts: a cache, a copy of the data, or the first tooth of a saw ends before.
    if used < 0.5 * limit or not (held or _keeps_growing(series, rate, at, window_s)):
        return None
    significant = _growth_beyond(run, series, rate, window_s, limit, held=held)
    if significant is None or rate * window_s < run.eased(growth, 0.0, held=held) * limit:
        return None
    full_in_s = max(0.0, limit - max(level, used)) / significant
    if full_in_s > full_within_s * (1 + run.rules.release if held else 1) or run.left_s < full_in_s:
        return None
    since = _growth_since(series, at, rate, level, window_s)
    if held or used >= 0.8 * limit or full_in_s <= (20 * MINUTE_S) or at - since >= (2 * HOUR_S):
        return Forecast(significant, full_in_s, since)
    return None


def _steady_growth(series: Series, at: float, window_s: float) -> tuple[float, float] | None:
    """Return the growth per second and the level of a series that grew in all of a window, else None."""
    if not series.times or series.times[0] > at - window_s * (1 - 0.5 / _PARTS):
        return None
    means = means_of_parts([series], at, window_s / _PARTS, _PARTS)
    if len(means) < _PARTS or means[-1] <= means[0]:
        return None
    if min(b - a for a, b in pairwise(means)) < _STEADY * (means[-1] - means[0]) / (_PARTS - 1):
        return None
    first, last = bisect_left(series.times, at - window_s), bisect_right(series.times, at)
    pairs = zip(series.times[first:last], series.values[first:last], strict=True)
    points = [(time - at, value) for time, value in pairs if value == value]
    slope, level = linear_regression(*zip(*points, strict=True))
    return (slope, level) if slope > 0 else None


def _keeps_growing(series: Series, rate: float, at: float, window_s: float) -> bool:
    """Return False if growth has slowed down since the window before."""
    middle = mean_between(series, at - 1.25 * window_s, at - window_s)
    before = mean_between(series, at - 2 * window_s, at - 1.75 * window_s)
    # Growth below this share of that in the window before is coming to its end, as a cache that fills.
    return middle is None or before is None or rate * 0.75 * window_s >= 0.75 * (middle - before)


def _growth_since(series: Series, at: float, rate: float, level: float, window_s: float) -> float:
    """Return when growth of ``rate`` per second to ``level`` at ``at`` began, at least a window ago.

    The line through the window is extended backward as long as the values are near it (within half of the
    growth of a window); where they diverge, the start is where the line meets their previous level.
    """
    since = at - window_s
    for time, value in zip(reversed(series.times), reversed(series.values), strict=True):
        if value != value or time > at - window_s:
            continue
        if abs(value - (level + rate * (time - at))) > rate * window_s / 2:
            return min(at - window_s, max(time, at - (level - value) / rate))
        since = time
    return since


def _growth_beyond(
    run: Watched, series: Series, rate: float, window_s: float, limit: float, *, held: bool
) -> float | None:
    """Return the part of the growth per second that is significant.

    It is less if the series grew like this before and fell back, and None if the level is one that it
    fell back from before. Anything before the last restart is ignored, because a crash empties
    everything. For a held finding a fall within the window is forgiven, so that a series that rises and
    half falls back does not make the finding come and go.
    """
    at = run.metrics.at or 0.0
    first, until = bisect_left(series.times, run.attempt_since), at - window_s if held else at
    points = [(t, v) for t, v in zip(series.times[first:], series.values[first:], strict=True) if v == v]
    # A sawtooth falls by this share of the growth in a window; growth goes beyond by this share of its fall
    # A fall from above this share of the limit is not reassuring: a crash may have caused it.
    tooth = _highest_tooth(points, until, 0.5 * rate * window_s, 0.98 * limit)
    if tooth is None:
        return rate
    top, top_at, height = tooth
    later = [value for time, value in points if time > top_at]
    beyond = max(later, default=top) - top
    if beyond >= 0.5 * height:
        return rate
    bends = [abs(a - 2 * b + c) / 2 for a, b, c in zip(later, later[1:], later[2:], strict=False)]
    noise = median(bends) if bends else 0.0
    # or by this many times the noise: of two equal tops one is always the higher.
    return min(rate, beyond / (at - top_at)) if beyond > 4.0 * noise else None


def _highest_tooth(
    points: Sequence[tuple[float, float]], until: float, least: float, below: float
) -> tuple[float, float, float] | None:
    """Return the highest top from which a series fell by ``least``: its level, its time, and the fall.

    Tops at ``below`` or higher do not count.
    """
    highest: tuple[float, float, float] | None = None
    top = top_at = lowest = math.nan
    for time, value in points:
        if top != top or value > top or (value - lowest >= least and top - lowest >= least):
            # Higher than before, or rising again after a fall: another tooth of the saw.
            if time > until:
                break
            top, top_at, lowest = value, time, value
            continue
        lowest = min(lowest, value)
        if top - lowest >= least and top < below and (highest is None or top >= highest[0]):
            highest = (top, top_at, top - lowest)
    return highest
