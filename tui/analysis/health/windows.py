"""Windows over series, and statistics that a few outliers can't move.

The start of a condition is found by following the data back. ``now − window`` would not do: it moves as time
passes, and differs from one check to the next.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import median

from tui.analysis.node_metrics import mean_known
from tui.analysis.series import Series, mean_between


def values_between(series: Series, start: float = -math.inf, end: float = math.inf) -> list[float]:
    """Return the finite values from one time up to, but not including, another."""
    times = series.times
    return list(filter(math.isfinite, series.values[bisect_left(times, start) : bisect_left(times, end)]))


def since_start(series: Series, start: float) -> Series:
    """Return what a series shows from a time on."""
    first = bisect_left(series.times, start)
    return series if first == 0 else Series(series.name, series.times[first:], series.values[first:])


def noise_of(values: Sequence[float]) -> float:
    """Return the standard deviation of single values about their neighbors; a trend and jumps don't count."""
    # Converts a median absolute deviation to a standard deviation.
    return 1.4826 * median(abs(b - a) for a, b in pairwise(values)) / math.sqrt(2) if values[1:] else 0.0


def level_between(values: Sequence[float], parts: int) -> list[float]:
    """Return the medians of equal parts of the values, up to the newest; fewer if there are fewer values."""
    size = max(1, len(values) // parts)
    first = max(0, len(values) - parts * size)
    return [median(values[start : start + size]) for start in range(first, len(values), size)]


def means_of_parts(series: Iterable[Series], end: float, part_s: float, count: int) -> list[float]:
    """Return the means of all series in the parts before a time, oldest first; parts without samples lack."""
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


def lowest_since(series: Series, start: float) -> float | None:
    """Return the lowest value since a time, None if the samples do not reach back to it."""
    first = bisect_right(series.times, start) - 1
    values = [value for value in series.values[first:] if value == value] if first >= 0 else []
    return min(values, default=None)


def first_time(series: Series, level: float, since: float = -math.inf) -> float:
    """Return when a series first reached a level (epoch s); infinite if it never did."""
    first = bisect_left(series.times, since)
    pairs = zip(series.times[first:], series.values[first:], strict=True)
    return next((time for time, value in pairs if value >= level), math.inf)
