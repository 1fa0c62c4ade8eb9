"""Growth of memory and storage, and when they are full.

Caches that are collected and checkpoints that are pruned make a sawtooth. So only growth beyond the highest
level so far counts.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import linear_regression
from typing import NamedTuple

from tui.analysis.health.rules import limit
from tui.analysis.health.watched import HOUR_S, MINUTE_S, Watched
from tui.analysis.health.windows import means_of_parts
from tui.analysis.series import Series, latest

_GROWTH = 0.01
"""Growth in a window that matters, as a share of the size."""
_SLOWER = 0.75
"""Growth that falls to this share is coming to its end, as a cache that fills."""


@dataclass(frozen=True, slots=True)
class Limits:
    growth_window_s: float = limit(
        900.0, "Time window over which a disk, a cache or memory must grow (or four times that window)."
    )
    full_within_s: float = limit(
        21600.0, "Growth is reported only if it fills up within this time, and before the run ends."
    )


class Forecast(NamedTuple):
    """Growth per second, the time until the limit, and since when it grows (epoch s)."""

    rate: float
    full_in_s: float
    since: float


def forecast(run: Watched, limits: Limits, series: Series, size: float, *, held: bool) -> Forecast | None:
    """Return when a series that grows steadily reaches its size, None unless that matters.

    While a model loads or is downloaded, memory and disks fill without meaning anything; so does growth in
    the lower half.
    """
    used, at = latest(series), run.metrics.at
    points = zip(series.times, series.values, strict=True)
    measured = [(time, value) for time, value in points if value == value and time >= run.growth_since]
    if used is None or at is None or used < 0.5 * size or not measured:
        return None
    times, values = zip(*measured, strict=True)
    series = Series(series.name, times, values)
    highest = Series(series.name, times, tuple(accumulate(values, max)))
    # Growth in bursts shows only over a longer time.
    for window_s in (limits.growth_window_s, 4 * limits.growth_window_s):
        if not held and (_slows(highest, at, 8 * limits.growth_window_s) or _rests(highest, at, window_s)):
            continue
        rate = _rate(series, highest, at, window_s, held=held)
        if rate * window_s <= run.eased(_GROWTH, 0.0, held=held) * size:
            continue
        full_in_s = max(0.0, size - used) / rate
        if full_in_s > run.eased(limits.full_within_s, 2 * limits.full_within_s, held=held):
            continue
        since = _since(series, at - window_s, at, used, rate)
        # A cache, a copy of the data, or the first tooth of a saw ends before one of these.
        matters = held or used >= 0.9 * size or full_in_s <= 10 * MINUTE_S or at - since >= HOUR_S
        if matters and full_in_s <= run.left_s:
            return Forecast(rate, full_in_s, since)
    return None


def _rate(series: Series, highest: Series, at: float, window_s: float, *, held: bool) -> float:
    """Return the growth per second in a window, beyond the highest level before; 0 unless it is steady."""
    begin = at - window_s
    means = means_of_parts([series], at, window_s / 4, 4)
    if len(means) < 4 or series.times[0] > begin + window_s / 8:
        return 0.0
    # A burst grows in one part only; once found, growth may pause.
    if not held and min(b - a for a, b in pairwise(means)) <= 0.4 * (means[-1] - means[0]) / 3:
        return 0.0
    first = bisect_left(series.times, begin)
    slope, level = linear_regression([time - at for time in series.times[first:]], series.values[first:])
    if first == 0:
        return slope
    top = highest.values[first - 1]
    return min(slope, (level - top) / (at - highest.times[bisect_left(highest.values, top)]))


def _rests(highest: Series, at: float, window_s: float) -> bool:
    """Return True if a series has not risen for longer than between its rises before."""
    first = bisect_left(highest.times, at - window_s)
    steps = pairwise(zip(highest.times[first:], highest.values[first:], strict=True))
    rises = [*highest.times[first : first + 1], *(time for (_, was), (time, value) in steps if value > was)]
    longest_s = max((b - a for a, b in pairwise(rises)), default=0.0)
    return not rises or at - rises[-1] > 1.5 * longest_s


def _slows(highest: Series, at: float, span_s: float) -> bool:
    """Return True if growth has slowed down, by what is known of a time span."""
    span_s = min(span_s, at - highest.times[0])
    means = means_of_parts([highest], at, span_s / 4, 4)
    return len(means) == 4 and means[3] - means[2] < _SLOWER * (means[1] - means[0])


def _since(series: Series, begin: float, at: float, level: float, rate: float) -> float:
    """Return when growth of ``rate`` per second to ``level`` began, at the beginning of the window or before.

    The line through the window is extended backward as long as the values are near it, to their level before.
    """
    since = begin
    tolerance = rate * (at - begin) / 2
    for time, value in zip(reversed(series.times), reversed(series.values), strict=True):
        if time < begin:
            if abs(value - (level + rate * (time - at))) > tolerance:
                return min(begin, max(time, at - (level - value) / rate))
            since = time
    return since
