"""Points and ranges over time that lines in any order add to, in bounded space."""

from __future__ import annotations

import math
from bisect import bisect_right
from operator import itemgetter

from tui.analysis.pauses import recurring_pause
from tui.analysis.series import Series

MAX_POINTS = 20_000
"""Maximum number of points per curve of the displayed stream."""

_UNTHINNED_POINTS = 64  # the newest points are never thinned


class ThinnedPoints:
    """Points (time, value, step) in time order; when full, old ones are reduced to the extremes of groups.

    Groups stand for as many added points each, so that a long curve is as dense at its beginning as later.
    Points with the same time keep their order of arrival. ``steps`` may contain ``None``. Those that come out
    of order are put in their places together, when somebody looks: older pages of a log come newest first.
    """

    __slots__ = ("_late", "_series", "_steps", "_thinned", "_times", "_values", "_weights", "limit", "name")

    def __init__(self, name: str, limit: int = MAX_POINTS) -> None:
        self.name = name
        self.limit = limit
        self._times: list[float] = []
        self._values: list[float] = []
        self._steps: list[int | None] = []
        self._late: list[tuple[float, float, int | None]] = []
        self._weights: list[int] = []  # the number of added points that each of the oldest stands for
        self._thinned = 0
        self._series: Series | None = None

    def __len__(self) -> int:
        return len(self._times) + len(self._late)

    @property
    def added(self) -> int:
        """Number of points added, including those that have been thinned."""
        return len(self) + self._thinned

    @property
    def times(self) -> list[float]:
        self._place_late()
        return self._times

    @property
    def values(self) -> list[float]:
        self._place_late()
        return self._values

    @property
    def steps(self) -> list[int | None]:
        self._place_late()
        return self._steps

    def add(self, time: float, value: float, step: int | None = None) -> None:
        times = self._times
        if not times or time >= times[-1]:
            times.append(time)
            self._values.append(value)
            self._steps.append(step)
        else:
            self._late.append((time, value, step))
        self._series = None
        count = len(times) + len(self._late)
        if count > self.limit and count > 2 * _UNTHINNED_POINTS:
            self._thin()

    def _place_late(self) -> None:
        if not self._late:
            return
        weights = [*self._weights, *[1] * (len(self._times) - len(self._weights))]
        points = [*zip(self._times, self._values, self._steps, weights, strict=True)]
        points += [(*late, 1) for late in self._late]
        points.sort(key=itemgetter(0))
        self._late.clear()
        self._times, self._values, self._steps, self._weights = map(list, zip(*points, strict=True))

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
        times, values, steps = self.times, self.values, self.steps
        old = len(values) - _UNTHINNED_POINTS
        weights = [*self._weights, *[1] * (len(values) - len(self._weights))]
        group = 4 * sum(weights[:old]) / old
        kept: list[tuple[int, int]] = []
        low = high = start = weight = 0
        for position in range(old):
            value = values[position]
            if position == start:
                low = high = position
            elif math.isnan(value):
                high = position  # People need to see a NaN, so it counts as the highest.
            elif math.isnan(values[low]) or value < values[low]:
                low = position
            elif value > values[high]:
                high = position
            weight += weights[position]
            if weight >= group or position == old - 1:
                pair = sorted({low, high})
                kept += [(extreme, weight // len(pair)) for extreme in pair]
                start, weight = position + 1, 0
        kept += [(position, weights[position]) for position in range(old, len(values))]
        self._times = [times[position] for position, _ in kept]
        self._values = [values[position] for position, _ in kept]
        self._steps = [steps[position] for position, _ in kept]
        self._weights = [weight for _, weight in kept]
        self._thinned += len(values) - len(kept)


class TimeRanges:
    """Ranges of activity, from times in any order; times less than 20 s apart are in one range."""

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []

    def add(self, time: float) -> None:
        """Record activity at that time (seconds)."""
        starts, ends = self.starts, self.ends
        if ends and starts[-1] <= time <= ends[-1] + 20.0:
            ends[-1] = max(ends[-1], time)
            return
        index = bisect_right(starts, time)
        if index and time <= ends[index - 1]:
            return
        joins_before = index > 0 and time <= ends[index - 1] + 20.0
        joins_after = index < len(starts) and starts[index] <= time + 20.0
        if joins_before and joins_after:
            ends[index - 1] = ends.pop(index)
            del starts[index]
        elif joins_before:
            ends[index - 1] = time
        elif joins_after:
            starts[index] = time
        else:
            starts.insert(index, time)
            ends.insert(index, time)
            del starts[:-2000], ends[:-2000]

    def longest_pause(self, since: float) -> float | None:
        """Return the longest pause since a time that is likely to recur; None if there was none."""
        first = max(1, bisect_right(self.starts, since))
        return recurring_pause(
            start - end for start, end in zip(self.starts[first:], self.ends[first - 1 :], strict=False)
        )
