"""What the steps of a run over time say: its speed, its rhythm, and where it began again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from tui.analysis.progress.snapshot import ThinnedPoints
from tui.analysis.series import Series

RECENT_S = 300.0
"""The speed of now is that of the last five minutes …"""

RECENT_MARKS = 5
"""… but of so many steps at least."""

LONG_S = 1800.0
"""What is left is reckoned by the speed of the last half hour, which has evaluations and savings in it."""

RATE_POINTS = 240
"""Points of the curve of speeds: more than a chart has columns."""

RESTART_GAP_S = 15.0
"""Steps that go back without so long a break are ranks telling theirs out of turn, not a restart."""

RESTART_STEPS = 2
"""Nor is going back by fewer steps than that."""

ROUND_ENDS = 0.8
"""A bar that got that far …"""

ROUND_BEGINS = 0.5
"""… and falls back to less than that part of it begins another round."""

ROUNDS = 2
"""A bar that began anew so often counts something within the run."""

_INTERVALS_LOOKED_AT = 50


def slope(marks: ThinnedPoints, first: int, last: int) -> float | None:
    """Steps a second between two marks; ``None`` when there is no way forward."""
    spent = marks.times[last] - marks.times[first]
    done = marks.values[last] - marks.values[first]
    return done / spent if spent > 0 and done > 0 else None


def window_start(marks: ThinnedPoints, window_s: float) -> int:
    """The first mark of the window before the last one, not reaching back beyond a restart."""
    times, steps = marks.times, marks.values
    last = len(times) - 1
    first = last
    oldest = times[last] - window_s
    while first and steps[first - 1] <= steps[first]:
        if times[first - 1] < oldest and last - first >= RECENT_MARKS:
            break
        first -= 1
    return first


def speed(marks: ThinnedPoints, window_s: float) -> float | None:
    """Steps a second over the window before the last mark."""
    return slope(marks, window_start(marks, window_s), len(marks) - 1)


def usual_interval(marks: ThinnedPoints) -> float | None:
    """The median time between marks that moved on, of the newest ones."""
    times, steps = marks.times, marks.values
    start = max(1, len(times) - _INTERVALS_LOOKED_AT)
    intervals = sorted(
        times[position] - times[position - 1]
        for position in range(start, len(times))
        if steps[position] > steps[position - 1]
    )
    return intervals[len(intervals) // 2] if intervals else None


def rates(marks: ThinnedPoints) -> Series:
    """Steps a second over time: between marks that are an equal time apart; none across a restart."""
    times, steps = marks.times, marks.values
    if len(times) < 2 or times[-1] <= times[0]:
        return Series("steps/s")
    count = min(RATE_POINTS, len(times) - 1)
    width = (times[-1] - times[0]) / count
    at: list[float] = []
    values: list[float] = []
    before = 0
    for number in range(1, count + 1):
        until = times[-1] if number == count else times[0] + number * width
        here = bisect_right(times, until) - 1
        if here > before and times[here] > times[before]:
            if steps[here] >= steps[before]:
                at.append(times[here])
                values.append((steps[here] - steps[before]) / (times[here] - times[before]))
            before = here
    return Series("steps/s", tuple(at), tuple(values))


def steps_back(marks: ThinnedPoints) -> tuple[float, ...]:
    """When the run went on at an earlier step than it had reached (epoch seconds)."""
    times, steps = marks.times, marks.values
    return tuple(
        times[place]
        for place in range(1, len(times))
        if steps[place] <= steps[place - 1] - RESTART_STEPS
        and times[place] - times[place - 1] >= RESTART_GAP_S
    )


def rounds(marks: ThinnedPoints, total: float) -> tuple[float, ...]:
    """When a count that was (nearly) full began anew (epoch s): within an epoch, a rollout, an evaluation."""
    times, steps = marks.times, marks.values
    return tuple(
        times[place]
        for place in range(1, len(times))
        if steps[place] <= ROUND_BEGINS * steps[place - 1] and steps[place - 1] >= ROUND_ENDS * total
    )


def counted_through(marks: ThinnedPoints) -> ThinnedPoints:
    """The marks with steps counted over the whole run, where they begin anew with every epoch.

    ``steps`` of the points are the epochs. The same object where no epoch begins at an earlier step.
    """
    values, epochs = marks.values, marks.steps
    offset = 0.0
    through: list[float] | None = None
    for place in range(1, len(values)):
        before, epoch = epochs[place - 1], epochs[place]
        if before is not None and epoch is not None and epoch > before and values[place] < values[place - 1]:
            if through is None:
                through = values[:place]
            offset = through[place - 1]
        if through is not None:
            through.append(values[place] + offset)
    if through is None:
        return marks
    counted = ThinnedPoints(marks.name, marks.limit)
    counted.times, counted.values, counted.steps = list(marks.times), through, list(epochs)
    return counted


def counted_over(marks: ThinnedPoints, begun: Collection[float]) -> ThinnedPoints:
    """The marks with steps counted over the rounds, which began at these times (epoch seconds)."""
    offset, through, starts = 0.0, [], frozenset(begun)
    for place, (time, value) in enumerate(zip(marks.times, marks.values, strict=True)):
        if place and time in starts and value < marks.values[place - 1]:
            offset += marks.values[place - 1]
        through.append(value + offset)
    counted = ThinnedPoints(marks.name, marks.limit)
    counted.times, counted.values, counted.steps = list(marks.times), through, list(marks.steps)
    return counted
