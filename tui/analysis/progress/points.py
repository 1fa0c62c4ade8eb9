"""Points and time ranges in bounded memory; they may be added in any order."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from operator import itemgetter

from tui.analysis.pauses import recurring_pause
from tui.analysis.series import Series

MAX_POINTS = 20_000
"""Maximum number of points per curve of the displayed stream."""

_UNTHINNED_POINTS = 64  # the newest points are never thinned


class ThinnedPoints:
    """Points (time, value, epoch) in time order; when full, groups of old points are reduced to extremes.

    Each group represents the same number of added points, so that a long curve is equally dense everywhere.
    Points with the same time keep their order of arrival. The epoch is None unless the value was counted in
    one. Points are sorted when they are read, not when they are added: older pages of a log arrive newest
    first.
    """

    def __init__(self, name: str, limit: int = MAX_POINTS) -> None:
        self.name = name
        self.limit = limit
        self._times: list[float] = []
        self._values: list[float] = []
        self._epochs: list[int | None] = []
        self._weights: list[int] = []  # number of added points that each point represents
        self._is_sorted = True
        self._thinned = 0
        self._series: Series | None = None

    def __len__(self) -> int:
        return len(self._times)

    @property
    def added(self) -> int:
        """Number of points added, including those that have been thinned."""
        return len(self) + self._thinned

    @property
    def times(self) -> list[float]:
        self._sort()
        return self._times

    @property
    def values(self) -> list[float]:
        self._sort()
        return self._values

    @property
    def epochs(self) -> list[int | None]:
        self._sort()
        return self._epochs

    def add(self, time: float, value: float, epoch: int | None = None) -> None:
        times = self._times
        if times and time < times[-1]:
            self._is_sorted = False
        times.append(time)
        self._values.append(value)
        self._epochs.append(epoch)
        self._weights.append(1)
        self._series = None
        if len(times) > self.limit and len(times) > 2 * _UNTHINNED_POINTS:
            self._thin()

    def shift(self, by: float) -> None:
        """Add ``by`` to each value that has an epoch."""
        pairs = zip(self._values, self._epochs, strict=True)
        self._values = [value if epoch is None else value + by for value, epoch in pairs]
        self._series = None

    def _sort(self) -> None:
        if not self._is_sorted:
            points = zip(self._times, self._values, self._epochs, self._weights, strict=True)
            sorted_points = sorted(points, key=itemgetter(0))
            self._times, self._values, self._epochs, self._weights = map(
                list, zip(*sorted_points, strict=True)
            )
            self._is_sorted = True

    def before(self, time: float) -> int | None:
        """Return the position of the last point at or before a time."""
        position = bisect_right(self.times, time) - 1
        return position if position >= 0 else None

    def series(self) -> Series:
        """Return the points as a series; the same object until one is added."""
        if self._series is None:
            self._series = Series(self.name, tuple(self.times), tuple(self.values))
        return self._series

    def _thin(self) -> None:
        times, values, epochs, weights = self.times, self.values, self.epochs, self._weights
        old = len(values) - _UNTHINNED_POINTS
        group = 4 * sum(weights[:old]) / old
        # A NaN must stay visible, so it counts as the maximum.
        heights = [math.inf if math.isnan(value) else value for value in values]
        kept_positions: list[int] = []
        start = weight = 0
        for position in range(old):
            weight += weights[position]
            if weight >= group or position == old - 1:
                positions = range(start, position + 1)
                pair = sorted(
                    {min(positions, key=heights.__getitem__), max(positions, key=heights.__getitem__)}
                )
                for extreme in pair:
                    weights[extreme] = weight // len(pair)
                kept_positions += pair
                start, weight = position + 1, 0
        kept_positions += range(old, len(values))
        self._thinned += len(values) - len(kept_positions)
        self._times = [times[position] for position in kept_positions]
        self._values = [values[position] for position in kept_positions]
        self._epochs = [epochs[position] for position in kept_positions]
        self._weights = [weights[position] for position in kept_positions]


class TimeRanges:
    """Ranges of activity, from times in any order; times less than 20 s apart are in one range."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []

    def add(self, time: float) -> None:
        """Record activity at that time (seconds)."""
        starts, ends = self.starts, self.ends
        if ends and starts[-1] <= time <= ends[-1] + 20.0:
            ends[-1] = max(ends[-1], time)
            return
        first, last = bisect_left(ends, time - 20.0), bisect_right(starts, time + 20.0)
        times = (time, *starts[first:last], *ends[first:last])
        starts[first:last], ends[first:last] = [min(times)], [max(times)]
        del starts[:-2000], ends[:-2000]

    def longest_pause(self, since: float) -> float | None:
        """Return the longest pause (s) that is likely to recur, of those since a time; None if none is."""
        first = max(1, bisect_right(self.starts, since))
        return recurring_pause(
            start - end for start, end in zip(self.starts[first:], self.ends[first - 1 :], strict=False)
        )
