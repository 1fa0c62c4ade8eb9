"""Whether something grows steadily, and when it will be full."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right

from tui.insight.series import Series, mean_between

PARTS = 4
"""The window is looked at in so many parts: what grows in each of them grows steadily …"""

LEAST_PART = 0.4
"""… if each adds at least that share of what a part adds on average. A burst adds it all at once."""


def steady_growth(series: Series, at: float, window_s: float) -> tuple[float, float] | None:
    """Growth a second and the level now, of a series that grew all through the window up to ``at``.

    None for one that did not, or whose samples do not cover the window.
    """
    if not series.times or series.times[0] > at - window_s * (1 - 0.5 / PARTS):
        return None
    part_s = window_s / PARTS
    first, last = (
        mean_between(series, at - window_s, at - window_s + part_s),
        mean_between(series, at - part_s, at),
    )
    if first is None or last is None or last <= first:
        return None  # at once, as with almost all
    means = [
        mean_between(series, at - (PARTS - part) * part_s, at - (PARTS - part - 1) * part_s)
        for part in range(PARTS)
    ]
    known = [mean for mean in means if mean is not None]
    if len(known) < PARTS:
        return None
    added = [later - earlier for earlier, later in itertools.pairwise(known)]
    average = (known[-1] - known[0]) / len(added)
    if average <= 0 or min(added) < LEAST_PART * average:
        return None
    return _line(series, at - window_s, at)


def _line(series: Series, start: float, end: float) -> tuple[float, float] | None:
    """Slope and end of the straight line that lies closest to the samples of a stretch of time."""
    places = range(bisect_left(series.times, start), bisect_right(series.times, end))
    points = [
        (series.times[place] - end, series.values[place])
        for place in places
        if series.values[place] == series.values[place]
    ]
    count = len(points)
    time_mean = sum(time for time, _ in points) / count
    value_mean = sum(value for _, value in points) / count
    spread = sum((time - time_mean) ** 2 for time, _ in points)
    if spread <= 0:
        return None
    slope = sum((time - time_mean) * (value - value_mean) for time, value in points) / spread
    return (slope, value_mean - slope * time_mean) if slope > 0 else None
