"""What a chart says in numbers: each series' value where the cursor is, and its extremes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from tui.insight.series import Series, latest
from tui.widgets.charts.braille import value_range


@dataclass(frozen=True, slots=True)
class Readout:
    """One series' numbers; None where there is none. ``low`` and ``high`` are of the window."""

    value: float | None
    low: float | None
    high: float | None


def read(series: Series, start: float, end: float, cursor: float | None) -> Readout:
    """The value at the cursor (or the newest in the window), and the window's extremes."""
    found = value_range(series, start, end)
    low, high = found if found is not None else (None, None)
    return Readout(_newest(series, end) if cursor is None else value_at(series, cursor), low, high)


def value_at(series: Series, x: float) -> float | None:
    """The sample nearest to a place; None in a gap, and beyond the ends by more than a usual distance."""
    times, values = series.times, series.values
    if not times:
        return None
    after = bisect_left(times, x)
    if after == 0 or after == len(times):
        at = 0 if after == 0 else len(times) - 1
        usual = (
            times[1] - times[0]
            if after == 0 and len(times) > 1
            else times[-1] - times[-2]
            if len(times) > 1
            else 0.0
        )
        value = values[at]
        return value if value == value and abs(times[at] - x) <= usual else None
    before = after - 1
    nearest = before if x - times[before] < times[after] - x else after
    value = values[nearest]
    return value if value == value else None


def _newest(series: Series, end: float) -> float | None:
    """The newest value up to the window's right edge."""
    stop = bisect_right(series.times, end)
    if stop == len(series.times):
        return latest(series)
    for position in range(stop - 1, -1, -1):
        value = series.values[position]
        if value == value:
            return value
    return None
