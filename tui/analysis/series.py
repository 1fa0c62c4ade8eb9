"""Series of samples over time: collecting, smoothing, logarithms, and statistics of time ranges."""

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
"""Weights of the smoothed curves that a key cycles through."""


def next_smoothing(weight: float) -> float:
    """Return the next stronger weight; after the strongest, 0.0 (no smoothing)."""
    return SMOOTHINGS[(SMOOTHINGS.index(weight) + 1) % len(SMOOTHINGS)]


_CACHED_SERIES = 128  # more series than the charts of a screen have


@lru_cache(_CACHED_SERIES)
def smoothed(series: Series, weight: float) -> Series:
    """Return the exponential moving average, corrected for its bias toward zero at the beginning.

    The previous mean has the weight ``weight``, each sample ``1 - weight``. Gaps and infinities are copied to
    the result; neither changes the mean.
    """
    if weight <= 0:
        return series
    mean = total_weight = 0.0
    sample_weight = 1.0 - weight
    values: list[float] = []
    for value in series.values:
        if value != value or isinf(value):
            values.append(value)
            continue
        mean = weight * mean + sample_weight * value
        total_weight = weight * total_weight + sample_weight
        values.append(mean / total_weight)
    return Series(series.name, series.times, tuple(values))


@lru_cache(_CACHED_SERIES)
def logarithmic(series: Series) -> Series:
    """Return the decimal logarithms of the samples; values of zero or less become gaps."""
    return Series(
        series.name, series.times, tuple(log10(value) if value > 0 else nan for value in series.values)
    )


GAP_FACTOR = 4.0
"""An interval between samples is a gap if it is this many times the usual interval nearby."""

_NEIGHBORS = 3  # Number of intervals on each side whose median is the usual interval.

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
        count = bisect_right(self.times, time)
        return self if count == len(self) else Series(self.name, self.times[:count], self.values[:count])


EMPTY = Series("")


class SeriesBuffer:
    """Collects samples that may be unordered and repeated; the last value for a time wins.

    Holds at most ``max_points`` samples and drops the oldest. ``snapshot`` depends only on these samples, not
    on their order of arrival, and returns the same object until a sample changes.
    """

    __slots__ = (
        "_final_count",
        "_is_current",
        "_max_points",
        "_snapshot",
        "_times",
        "_values",
        "name",
    )

    def __init__(self, name: str, *, max_points: int = 2000) -> None:
        self.name = name
        self._max_points = max(2, max_points)
        # Not lists, because the garbage collector would scan a million floats, which blocks the event loop.
        self._times = array("d")
        self._values = array("d")
        # The snapshot has NaN in gaps. Appending samples does not change the snapshot of the first
        # `_final_count` samples.
        self._final_count = 0
        self._snapshot = Series(name)
        self._is_current = True

    def __len__(self) -> int:
        return len(self._times)

    @property
    def newest(self) -> float | None:
        return self._times[-1] if self._times else None

    def add(self, time: float, value: float | None) -> bool:
        """Add a sample (``None`` is a gap). Return True if it changed the series."""
        new_value = math.nan if value is None else float(value)
        times = self._times
        if not times or time > times[-1]:
            times.append(time)
            self._values.append(new_value)
        else:
            position = bisect_left(times, time)
            if times[position] == time:
                old_value = self._values[position]
                if old_value == new_value or (old_value != old_value and new_value != new_value):
                    return False
                self._values[position] = new_value
            else:
                if position == 0 and len(times) >= self._max_points:
                    return False  # older than everything in a full buffer
                times.insert(position, time)
                self._values.insert(position, new_value)
            if position < self._final_count + _NEIGHBORS:
                self._final_count = 0
        self._is_current = False
        if len(times) > self._max_points:
            # a full buffer drops an eighth at once, so that dropping is rare
            excess = len(times) - max(2, int(self._max_points * (7 / 8)))
            del times[:excess]
            del self._values[:excess]
            self._final_count = 0
        return True

    def extend(
        self, samples: Iterable[tuple[float, float | None]], min_interval_s: float = 0.0
    ) -> list[float]:
        """Add samples in any order; return the times whose values changed.

        With ``min_interval_s``, keep only the first sample in each interval of that length (from the epoch).
        """
        return [
            time
            for time, value in samples
            if not self._is_crowded(time, min_interval_s) and self.add(time, value)
        ]

    def _is_crowded(self, time: float, min_interval_s: float) -> bool:
        """Return True if the buffer has a sample at another time in the same interval."""
        if not min_interval_s:
            return False
        position = bisect_left(self._times, time)
        neighbors = self._times[max(0, position - 1) : position + 1]
        return time not in neighbors and any(
            other // min_interval_s == time // min_interval_s for other in neighbors
        )

    def value_near(self, time: float, tolerance_s: float) -> float | None:
        """Return the newest value of the last ``tolerance_s`` seconds before ``time``; None without any."""
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
        times, values, old_snapshot = self._times, self._values, self._snapshot
        unchanged_count = (
            bisect_right(old_snapshot.times, times[self._final_count - 1]) if self._final_count else 0
        )
        new_times, new_values = [], []
        for position in range(self._final_count, len(times)):
            if position and self._is_gap(position - 1):
                new_times.append((times[position - 1] + times[position]) / 2)
                new_values.append(math.nan)
            new_times.append(times[position])
            new_values.append(values[position])
        # Whether there is a gap before a sample is final once enough intervals follow it.
        self._final_count = max(self._final_count, len(times) - _NEIGHBORS - 1)
        self._snapshot = Series(
            self.name,
            (*old_snapshot.times[:unchanged_count], *new_times),
            (*old_snapshot.values[:unchanged_count], *new_values),
        )
        self._is_current = True

    def _is_gap(self, position: int) -> bool:
        """Return True if the interval after the sample is far longer than the intervals nearby.

        Only nearby intervals are compared, because old samples are often sparser than new samples.
        """
        times = self._times
        interval = times[position + 1] - times[position]
        last_index = len(times) - 1
        interval_before = times[position] - times[position - 1] if position else interval
        interval_after = times[position + 2] - times[position + 1] if position + 2 <= last_index else interval
        if interval <= GAP_FACTOR * min(interval_before, interval_after):
            return False
        nearby = [
            times[other + 1] - times[other]
            for other in range(max(0, position - _NEIGHBORS), min(last_index, position + _NEIGHBORS + 1))
            if other != position
        ]
        nearby.sort()
        return interval > GAP_FACTOR * nearby[len(nearby) // 2]


def value_range(values: Sequence[float]) -> Range | None:
    """Return the lowest and highest value, ignoring NaN; ``None`` if no value is left."""
    if not values:
        return None
    if math.isnan(sum(values)):  # The sum is NaN: the values have a NaN, or infinities of both signs.
        values = [value for value in values if value == value]
        if not values:
            return None
    return min(values), max(values)


def column_extremes(series: Series, start: float, end: float, columns: int) -> tuple[Range | None, ...]:
    """Divide ``start`` … ``end`` into equal time ranges; return the lowest and highest value in each.

    A time range includes its start but not its end; the last includes both. ``None`` for one without values.
    """
    if columns <= 0:
        return ()
    span = end - start
    if span <= 0 or not series.times:
        return (None,) * columns
    times, values = series.times, series.values
    width = span / columns
    result: list[Range | None] = []
    begin_index = bisect_left(times, start)
    end_index = bisect_right(times, end)
    for column in range(1, columns + 1):
        next_index = (
            end_index
            if column == columns
            else bisect_left(times, start + column * width, begin_index, end_index)
        )
        result.append(value_range(values[begin_index:next_index]) if next_index > begin_index else None)
        begin_index = next_index
    return tuple(result)


def extent(series: Iterable[Series], start: float = -math.inf, end: float = math.inf) -> Range | None:
    """Return the lowest and highest finite value of all series between two times, both inclusive."""
    extremes: list[float] = []
    for curve in series:
        values = curve.values[bisect_left(curve.times, start) : bisect_right(curve.times, end)]
        curve_range = value_range(values)
        if curve_range is not None and not all(map(isfinite, curve_range)):
            curve_range = value_range([value for value in values if isfinite(value)])
        extremes.extend(curve_range or ())
    return value_range(extremes)


def latest(series: Series, end: float = math.inf) -> float | None:
    """Return the newest value up to the time ``end``, skipping gaps; None without any."""
    values = series.values[: bisect_right(series.times, end)]
    return next((value for value in reversed(values) if value == value), None)


def even_means(series: Series, count: int) -> tuple[float | None, ...]:
    """Divide the time range into ``count`` equal parts; return their means, None for a part without values.

    An empty series returns an empty tuple.
    """
    if not series.times:
        return ()
    start, end = series.times[0], series.times[-1]
    edges = [-math.inf, *(start + (end - start) * index / count for index in range(1, count + 1))]
    return tuple(mean_between(series, *edge) for edge in pairwise(edges))


def values_between(series: Series, start: float = -math.inf, end: float = math.inf) -> list[float]:
    """Return the finite values from ``start`` (inclusive) to ``end`` (exclusive)."""
    values = series.values[bisect_left(series.times, start) : bisect_left(series.times, end)]
    return list(filter(isfinite, values))


def mean_between(series: Series, start: float, end: float) -> float | None:
    """Return the mean of the values from ``start`` (exclusive) to ``end`` (inclusive), ignoring gaps."""
    values = series.values[bisect_right(series.times, start) : bisect_right(series.times, end)]
    present_values = [value for value in values if value == value]
    return sum(present_values) / len(present_values) if present_values else None
