"""Samples over time: collected, reduced to columns, smoothed, and shown on a logarithmic scale."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import isfinite, isinf, log10, nan

SMOOTHINGS = (0.0, 0.6, 0.9, 0.98)
"""Weights that a key cycles through."""


def next_smoothing(weight: float) -> float:
    """Return the next stronger weight; after the strongest, none."""
    return SMOOTHINGS[(SMOOTHINGS.index(weight) + 1) % len(SMOOTHINGS)]


_CACHED_SERIES = 128  # more than a screen of charts has


@lru_cache(_CACHED_SERIES)
def smoothed(series: Series, weight: float) -> Series:
    """Return the exponential moving average, corrected for its bias toward zero at the beginning.

    Each sample has the weight ``1 - weight``, the previous mean ``weight``. Gaps and infinities stay
    where they are; neither changes the mean.
    """
    if weight <= 0:
        return series
    mean = filled = 0.0
    rest = 1.0 - weight
    values: list[float] = []
    for value in series.values:
        if value != value or isinf(value):
            values.append(value)
            continue
        mean = weight * mean + rest * value
        filled = weight * filled + rest
        values.append(mean / filled)
    return Series(series.name, series.times, tuple(values))


@lru_cache(_CACHED_SERIES)
def logarithmic(series: Series) -> Series:
    """Return the decimal logarithms of the samples; values of zero or less become gaps."""
    return Series(
        series.name, series.times, tuple(log10(value) if value > 0 else nan for value in series.values)
    )


GAP_FACTOR = 4.0
"""An interval this many times the usual one nearby is a gap."""

_NEIGHBORS = 3  # Intervals on each side that determine the usual interval around a position.

Range = tuple[float, float]
"""The lowest and the highest value."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time: ``times`` are epoch seconds, ascending; a NaN value is a gap."""

    name: str
    times: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.times)

    def until(self, time: float) -> Series:
        stop = bisect_right(self.times, time)
        return self if stop == len(self) else Series(self.name, self.times[:stop], self.values[:stop])


EMPTY = Series("")


class SeriesBuffer:
    """Collects samples that may be unordered and repeated; the last value for a time wins.

    Holds at most ``max_points``, dropping the oldest. ``snapshot`` depends only on the samples held, not
    on their order of arrival, and is the same object until something changes.
    """

    __slots__ = (
        "_is_current",
        "_max_points",
        "_settled",
        "_snapshot",
        "_times",
        "_values",
        "name",
    )

    def __init__(self, name: str, *, max_points: int = 2000) -> None:
        self.name = name
        self._max_points = max(2, max_points)
        # Arrays, because the garbage collector would scan lists of a million floats, which stalls the screen.
        self._times = array("d")
        self._values = array("d")
        # The snapshot includes gaps. Appending samples does not change its part for the first `_settled`
        # samples.
        self._settled = 0
        self._snapshot = Series(name)
        self._is_current = True

    def __len__(self) -> int:
        return len(self._times)

    @property
    def newest(self) -> float | None:
        return self._times[-1] if self._times else None

    def add(self, time: float, value: float | None) -> bool:
        """Add a sample (``None`` is a gap). Return True if it changed anything."""
        number = math.nan if value is None else float(value)
        times = self._times
        if not times or time > times[-1]:
            times.append(time)
            self._values.append(number)
        else:
            position = bisect_left(times, time)
            if times[position] == time:
                old = self._values[position]
                if old == number or (old != old and number != number):
                    return False
                self._values[position] = number
            else:
                if position == 0 and len(times) >= self._max_points:
                    return False  # older than everything in a full buffer
                times.insert(position, time)
                self._values.insert(position, number)
            if position < self._settled + _NEIGHBORS:
                self._settled = 0
        self._is_current = False
        if len(times) > self._max_points:
            # a full buffer drops an eighth at once, so that dropping is rare
            surplus = len(times) - max(2, int(self._max_points * (7 / 8)))
            del times[:surplus]
            del self._values[:surplus]
            self._settled = 0
        return True

    def extend(self, samples: Iterable[tuple[float, float | None]], apart_s: float = 0.0) -> list[float]:
        """Add samples in any order, at most one in each ``apart_s``. Return the times that changed."""
        return [
            time for time, value in samples if not self._is_crowded(time, apart_s) and self.add(time, value)
        ]

    def _is_crowded(self, time: float, apart_s: float) -> bool:
        """Return True if there is another sample in the same interval of ``apart_s`` (from the epoch)."""
        if not apart_s:
            return False
        position = bisect_left(self._times, time)
        near = self._times[max(0, position - 1) : position + 1]
        return time not in near and any(other // apart_s == time // apart_s for other in near)

    def value_near(self, time: float, tolerance_s: float) -> float | None:
        """Return the newest value within ``tolerance_s`` up to a time; ``None`` if there is none."""
        position = bisect_right(self._times, time) - 1
        if position < 0 or self._times[position] < time - tolerance_s:
            return None
        value = self._values[position]
        return None if value != value else value

    def snapshot(self) -> Series:
        """Return the current series, with a NaN in each gap."""
        if not self._is_current:
            self._update_snapshot()
        return self._snapshot

    def _update_snapshot(self) -> None:
        times, values, before = self._times, self._values, self._snapshot
        cut = bisect_right(before.times, times[self._settled - 1]) if self._settled else 0
        new_times, new_values = [], []
        for position in range(self._settled, len(times)):
            if position and self._is_gap(position - 1):
                new_times.append((times[position - 1] + times[position]) / 2)
                new_values.append(math.nan)
            new_times.append(times[position])
            new_values.append(values[position])
        # A gap before a sample is certain once enough intervals follow it.
        self._settled = max(self._settled, len(times) - _NEIGHBORS - 1)
        self._snapshot = Series(
            self.name, (*before.times[:cut], *new_times), (*before.values[:cut], *new_values)
        )
        self._is_current = True

    def _is_gap(self, position: int) -> bool:
        """Return True if the interval after the sample is far longer than usual nearby.

        The neighborhood counts, not the whole series, because old samples are often sparser than new ones.
        """
        times = self._times
        distance = times[position + 1] - times[position]
        last = len(times) - 1
        before = times[position] - times[position - 1] if position else distance
        after = times[position + 2] - times[position + 1] if position + 2 <= last else distance
        if distance <= GAP_FACTOR * min(before, after):
            return False
        nearby = [
            times[other + 1] - times[other]
            for other in range(max(0, position - _NEIGHBORS), min(last, position + _NEIGHBORS + 1))
            if other != position
        ]
        nearby.sort()
        return distance > GAP_FACTOR * nearby[len(nearby) // 2]


def value_range(values: Sequence[float]) -> Range | None:
    """Return the lowest and highest value, ignoring NaN; ``None`` if no value is left."""
    if not values:
        return None
    if math.isnan(sum(values)):  # A NaN, or infinities of both signs: filter them out the slow way.
        values = [value for value in values if value == value]
        if not values:
            return None
    return min(values), max(values)


def column_extremes(series: Series, start: float, end: float, columns: int) -> tuple[Range | None, ...]:
    """Return the exact lowest and highest value of each of ``columns`` equal parts of ``start`` … ``end``.

    A part includes its start but not its end; the last one includes both. ``None`` if a part has no value.
    """
    if columns <= 0:
        return ()
    span = end - start
    if span <= 0 or not series.times:
        return (None,) * columns
    times, values = series.times, series.values
    width = span / columns
    result: list[Range | None] = []
    here = bisect_left(times, start)
    stop = bisect_right(times, end)
    for column in range(1, columns + 1):
        following = stop if column == columns else bisect_left(times, start + column * width, here, stop)
        result.append(value_range(values[here:following]) if following > here else None)
        here = following
    return tuple(result)


def extent(series: Iterable[Series], start: float = -math.inf, end: float = math.inf) -> Range | None:
    """Return the lowest and highest finite value of all series between two times, both inclusive."""
    ends: list[float] = []
    for curve in series:
        values = curve.values[bisect_left(curve.times, start) : bisect_right(curve.times, end)]
        between = value_range(values)
        if between is not None and not all(map(isfinite, between)):
            between = value_range([value for value in values if isfinite(value)])
        ends.extend(between or ())
    return value_range(ends)


def latest(series: Series, end: float = math.inf) -> float | None:
    """Return the newest value up to a time that is not a gap."""
    values = series.values[: bisect_right(series.times, end)]
    return next((value for value in reversed(values) if value == value), None)


def even_means(series: Series, count: int) -> tuple[float | None, ...]:
    """Return the means of equal parts of the time range, None for those without values; () without any."""
    if not series.times:
        return ()
    start, end = series.times[0], series.times[-1]
    edges = [-math.inf, *(start + (end - start) * part / count for part in range(1, count + 1))]
    return tuple(mean_between(series, *edge) for edge in pairwise(edges))


def values_between(series: Series, start: float = -math.inf, end: float = math.inf) -> list[float]:
    """Return the finite values from one time up to, but not including, another."""
    values = series.values[bisect_left(series.times, start) : bisect_left(series.times, end)]
    return list(filter(isfinite, values))


def mean_between(series: Series, start: float, end: float) -> float | None:
    """Return the mean of the values after one time and up to another, ignoring gaps."""
    values = series.values[bisect_right(series.times, start) : bisect_right(series.times, end)]
    finite = [value for value in values if value == value]
    return sum(finite) / len(finite) if finite else None
