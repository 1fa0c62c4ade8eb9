"""Windows over series, and statistics that are robust to outliers.

The start of a condition is searched backward in the data. ``now − window`` is no substitute: it moves as time
passes, and differs from one check to the next.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import fmean, median

from tui.analysis.node_metrics import mean_known
from tui.analysis.series import Series, mean_between


def since_start(series: Series, start: float) -> Series:
    """Return the points of a series from ``start`` (epoch s) on."""
    first = bisect_left(series.times, start)
    return series if first == 0 else Series(series.name, series.times[first:], series.values[first:])


def noise_of(values: Sequence[float]) -> float:
    """Estimate the standard deviation of single values around their neighbors, ignoring trends and jumps."""
    bends = [abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    # For Gaussian noise, the median of |a − 2b + c| is 1.65 standard deviations.
    return median(bends) / 1.65 if bends else 0.0


def segment_medians(values: Sequence[float], count: int) -> list[float]:
    """Split the newest values into ``count`` segments of equal length, or fewer; return their medians."""
    size = max(1, len(values) // count)
    first = max(0, len(values) - count * size)
    return [median(values[start : start + size]) for start in range(first, len(values), size)]


def segment_means(series: Iterable[Series], end: float, segment_s: float, count: int) -> list[float]:
    """Return the mean of all series in each of ``count`` time ranges up to ``end``, oldest first.

    Ranges without a value are omitted.
    """
    series = tuple(series)
    edges = [
        (end - (number + 1) * segment_s, end - number * segment_s) for number in range(count - 1, -1, -1)
    ]
    means = (mean_known(mean_between(curve, *edge) for curve in series) for edge in edges)
    return [mean for mean in means if mean is not None]


def holds_since(series: Series, holds: Callable[[float], bool], *, forgiven: int = 0) -> float:
    """Return since when ``holds`` is True without interruption (epoch s); infinite if it is not True now.

    Gaps and NaN do not interrupt it, nor do up to ``forgiven`` values in a row for which it is False.
    """
    first, missed = math.inf, 0
    for time, value in zip(reversed(series.times), reversed(series.values), strict=True):
        if value != value:
            continue
        if holds(value):
            first, missed = time, 0
        else:
            missed += 1
            if missed > forgiven:
                break
    return first


def first_time(series: Series, level: float, since: float = -math.inf) -> float:
    """Return when a series first reached ``level`` (epoch s), from ``since`` on; infinite if it never did."""
    recent = since_start(series, since)
    pairs = zip(recent.times, recent.values, strict=True)
    return next((time for time, value in pairs if value >= level), math.inf)


def binned(
    series: Series, start: float, end: float, bin_s: float, mean: Callable[[list[float]], float] = fmean
) -> dict[float, float]:
    """Return the mean of each bin of ``bin_s`` seconds up to ``end``, by start time, without empty bins."""
    count = max(0, int((end - start) // bin_s))
    starts = [end - number * bin_s for number in range(count, 0, -1)]
    edges = [bisect_right(series.times, time) for time in (*starts, end)]
    bins = (list(filter(math.isfinite, series.values[low:high])) for low, high in pairwise(edges))
    return {bin_start: mean(values) for bin_start, values in zip(starts, bins, strict=True) if values}


EARLIER = 4
"""Minimum number of earlier bins from which the usual level is known."""


def flipped(times: Sequence[float], values: Iterable[float]) -> Series:
    """Return the negated values as a curve, so that lower values are better."""
    return Series("", tuple(times), tuple(-value for value in values))


_NEIGHBORS = 20
_PAUSE_FACTOR = 4.0  # An interval this many times as long as its neighbors contains a pause.


def paced(steps: Series) -> Series:
    """Return the steps per second over time, without intervals that contain a pause.

    The speeds that trainers print do not include pauses, either.
    """
    pairs = pairwise(zip(steps.times, steps.values, strict=True))
    speeds = [(t, (v - before) / (t - at)) for (at, before), (t, v) in pairs if t > at and v > before]
    steady: list[tuple[float, float]] = []
    for first in range(0, len(speeds), _NEIGHBORS):
        neighbors = speeds[first : first + _NEIGHBORS]
        min_speed = median(speed for _, speed in neighbors) / _PAUSE_FACTOR
        steady += [point for point in neighbors if point[1] >= min_speed]
    return Series("steps/s", tuple(time for time, _ in steady), tuple(speed for _, speed in steady))


def mean_speed(speeds: Sequence[float]) -> float:
    """Return the harmonic mean, the speed over all steps: a slow step counts more, since it takes longer."""
    positive = [speed for speed in speeds if speed > 0]
    return 1 / fmean(1 / speed for speed in positive) if positive else 0.0
