"""Windows over series, and statistics that a few outliers can't move.

The start of a condition is found by following the data back. ``now − window`` would not do: it moves as time
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
    """Return the part of a series from a time on."""
    first = bisect_left(series.times, start)
    return series if first == 0 else Series(series.name, series.times[first:], series.values[first:])


def noise_of(values: Sequence[float]) -> float:
    """Return the standard deviation of single values about their neighbors; a trend and jumps don't count."""
    bends = [abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    # For Gaussian noise, the median of |a − 2b + c| is 1.65 standard deviations.
    return median(bends) / 1.65 if bends else 0.0


def level_between(values: Sequence[float], parts: int) -> list[float]:
    """Return the medians of equal parts of the values, up to the newest; fewer if there are fewer values."""
    size = max(1, len(values) // parts)
    first = max(0, len(values) - parts * size)
    return [median(values[start : start + size]) for start in range(first, len(values), size)]


def means_of_parts(series: Iterable[Series], end: float, part_s: float, count: int) -> list[float]:
    """Return the mean of all series in each of the parts before ``end``, oldest first; no empty parts."""
    series = tuple(series)
    edges = [(end - (number + 1) * part_s, end - number * part_s) for number in range(count - 1, -1, -1)]
    means = (mean_known(mean_between(curve, *edge) for curve in series) for edge in edges)
    return [mean for mean in means if mean is not None]


def holds_since(series: Series, holds: Callable[[float], bool], *, forgiven: int = 0) -> float | None:
    """Return the start of the newest run of values for which ``holds`` is True, None if there is none.

    Gaps do not end it, nor do up to ``forgiven`` other values in a row.
    """
    first: float | None = None
    missed = 0
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
    """Return when a series first reached a level (epoch s); infinite if it never did."""
    first = bisect_left(series.times, since)
    pairs = zip(series.times[first:], series.values[first:], strict=True)
    return next((time for time, value in pairs if value >= level), math.inf)


def binned(
    series: Series, start: float, end: float, bin_s: float, mean: Callable[[list[float]], float] = fmean
) -> dict[float, float]:
    """Return the means of the bins up to ``end``, by their beginning, without empty bins."""
    count = max(0, int((end - start) // bin_s))
    starts = [end - number * bin_s for number in range(count, 0, -1)]
    edges = [bisect_right(series.times, at) for at in (*starts, end)]
    parts = (list(filter(math.isfinite, series.values[low:high])) for low, high in pairwise(edges))
    return {at: mean(values) for at, values in zip(starts, parts, strict=True) if values}


EARLIER = 4
"""Number of bins after which a level is known."""


def flipped(times: Sequence[float], values: Iterable[float]) -> Series:
    """Return the negated values as a curve, so that lower values are better."""
    return Series("", tuple(times), tuple(-value for value in values))


_NEAR, _PAUSE = 20, 4.0  # A step that takes this many times as long as those around it contains a pause.


def paced(marks: Series) -> Series:
    """Return the speed at each step count, without intervals with a pause, which printed speeds omit, too."""
    pairs = pairwise(zip(marks.times, marks.values, strict=True))
    speeds = [(t, (v - before) / (t - at)) for (at, before), (t, v) in pairs if t > at and v > before]
    steady: list[tuple[float, float]] = []
    for first in range(0, len(speeds), _NEAR):
        near = speeds[first : first + _NEAR]
        least = median(speed for _, speed in near) / _PAUSE
        steady += [point for point in near if point[1] >= least]
    return Series("steps/s", tuple(time for time, _ in steady), tuple(speed for _, speed in steady))


def mean_speed(speeds: Sequence[float]) -> float:
    """Return the speed over all of the work (harmonic mean), in which slow steps count for their duration."""
    positive = [speed for speed in speeds if speed > 0]
    return 1 / fmean(1 / speed for speed in positive) if positive else 0.0
