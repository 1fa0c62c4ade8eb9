"""Derive a run's speed, usual step interval, time left, and restarts from its steps over time."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import median

from tui.analysis.progress.snapshot import ThinnedPoints
from tui.analysis.series import Series

RECENT_S = 300.0
"""Window of the current speed."""

LONG_S = 1800.0
"""Window of the speed used for the ETA: long enough to include evaluations and saves."""

RESTART_STEPS = 2
"""Going back by fewer steps than this is not a restart either."""

ROUNDS = 2
"""A progress bar that restarted this many times counts epochs or rollouts, not the run."""


def slope(marks: ThinnedPoints, first: int, last: int) -> float | None:
    """Return steps per second between two marks; ``None`` if the step did not increase."""
    spent = marks.times[last] - marks.times[first]
    done = marks.values[last] - marks.values[first]
    return done / spent if spent > 0 and done > 0 else None


def window_start(marks: ThinnedPoints, window_s: float) -> int:
    """Return the first mark of the window before the last one, not reaching back beyond a restart."""
    times, steps = marks.times, marks.values
    last = len(times) - 1
    first = last
    oldest = times[last] - window_s
    while first and steps[first - 1] <= steps[first]:
        if times[first - 1] < oldest and last - first >= 5:
            break
        first -= 1
    return first


def speed(marks: ThinnedPoints, window_s: float) -> float | None:
    return slope(marks, window_start(marks, window_s), len(marks) - 1)


def is_ordered(marks: ThinnedPoints) -> bool:
    """Return False if the newest counts come in no order, as where people or services mention steps.

    A trainer's count rises. If it often goes back (short epochs, a crash loop, ranks out of turn), it moves
    by the same amounts again and again.
    """
    moves = [later - before for before, later in pairwise(marks.values[-64:]) if later != before]
    ahead, back = Counter(move for move in moves if move > 0), Counter(move for move in moves if move < 0)
    if ahead.total() >= 2 * back.total():
        return True
    return max(ahead.values(), default=0) > 2 and all(
        2 * max(side.values()) >= side.total() for side in (ahead, back)
    )


def numbered(series: Series) -> Series:
    """Return the series with its values counted: for lines without steps, their rate is the speed."""
    return Series(series.name, series.times, tuple(map(float, range(len(series)))))


def usual_interval(marks: ThinnedPoints | Series) -> float | None:
    """Return the median time between increasing steps among the newest marks."""
    times, steps = marks.times, marks.values
    start = max(1, len(times) - 50)
    intervals = sorted(
        times[position] - times[position - 1]
        for position in range(start, len(times))
        if steps[position] > steps[position - 1]
    )
    return intervals[len(intervals) // 2] if intervals else None


def rates(marks: ThinnedPoints | Series) -> Series:
    """Return steps per second over time, between equally spaced marks; none across a restart."""
    times, steps = _first_of_each_step(marks)
    if len(times) < 2 or times[-1] <= times[0]:
        return Series("steps/s")
    count = min(240, len(times) - 1)  # more than a chart has columns
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


def _first_of_each_step(marks: ThinnedPoints | Series) -> tuple[list[float], list[float]]:
    """Return the times and steps of the first line of each step: every rank may print each."""
    times: list[float] = []
    steps: list[float] = []
    for time, step in zip(marks.times, marks.values, strict=True):
        if not steps or step > steps[-1] or step <= steps[-1] - RESTART_STEPS:
            times.append(time)
            steps.append(step)
    # The oldest line that was read may be any of its step.
    is_cut = len(times) < len(marks.times)
    return times[is_cut:], steps[is_cut:]


def eta_range_s(
    left_steps: float, rates: Sequence[float | None], times: Sequence[float], steps: Sequence[float]
) -> tuple[float, float] | None:
    """Return the minimum and maximum seconds for ``left_steps``; None while no speed is known.

    ``rates`` are the speeds (steps per second) that may continue: the recent one, that of the last half
    hour, that of the whole run. ``times`` and ``steps`` are the data points of the speed: ascending, and
    not reaching back beyond a restart.
    """
    known = [rate for rate in rates if rate is not None and rate > 0 and math.isfinite(rate)]
    if not known:
        return None
    # Two standard errors: the end is within the range in about 19 of 20 steady runs.
    share = max(0.02, 2 * _relative_error(times, steps))
    fastest, slowest = max(known) * (1 + share), min(known) / (1 + share)
    return left_steps / fastest, left_steps / slowest


def _relative_error(times: Sequence[float], steps: Sequence[float]) -> float:
    """Return the relative standard error of the mean speed over equal time ranges."""
    if len(times) < 3 or times[-1] <= times[0]:
        return 0.25
    blocks = min(8, len(times) - 1)
    width = (times[-1] - times[0]) / blocks
    places = [min(len(times) - 1, bisect_left(times, times[0] + n * width)) for n in range(blocks + 1)]
    places[-1] = len(times) - 1
    speeds = [
        (steps[end] - steps[start]) / (times[end] - times[start])
        for start, end in pairwise(places)
        if times[end] > times[start]
    ]
    mean = sum(speeds) / len(speeds) if speeds else 0.0
    if len(speeds) < 2 or mean <= 0:
        return 0.25
    variance = sum((speed - mean) ** 2 for speed in speeds) / (len(speeds) - 1)
    return math.sqrt(variance / len(speeds)) / mean


def restart_times(marks: ThinnedPoints) -> tuple[float, ...]:
    """Return the times (epoch seconds) when the run resumed at an earlier step."""
    times, steps = marks.times, marks.values
    places = [
        place
        for place in range(1, len(times))
        # Without a pause, ranks printed out of order.
        if steps[place] <= steps[place - 1] - RESTART_STEPS and times[place] - times[place - 1] >= 15.0
    ]
    if not places:
        return ()
    usual = median(abs(later - before) for before, later in pairwise(steps))
    # A single count that is out of line (0/900 between 850 and 900) is none: no run makes up for twice its
    # usual move by the next count.
    return tuple(
        times[place]
        for place in places
        if steps[place - 1] - steps[place] <= 2.0 * usual
        or (place + 1 < len(steps) and steps[place - 1] > steps[place + 1])
    )


def rounds(marks: ThinnedPoints, total: float) -> tuple[float, ...]:
    """Return the times (epoch s) when a nearly complete count restarted, as for an epoch or a rollout."""
    times, steps = marks.times, marks.values
    return tuple(
        times[place]
        for place in range(1, len(times))
        if steps[place] <= 0.5 * steps[place - 1] and steps[place - 1] >= 0.8 * total
    )


def unroll_epochs(marks: ThinnedPoints) -> ThinnedPoints:
    """Convert steps that restart with every epoch to steps of the whole run.

    ``steps`` of the points are the epochs. Returns the same object if no epoch begins at a lower step.
    """
    pairs = enumerate(pairwise(marks.steps), start=1)
    begins = {
        place
        for place, (before, epoch) in pairs
        if before is not None and epoch is not None and before < epoch
    }
    return _unrolled(marks, begins)


def unroll_rounds(marks: ThinnedPoints, begun: Collection[float]) -> ThinnedPoints:
    """Convert steps to a count over all rounds, which began at these times (epoch seconds)."""
    return _unrolled(marks, {place for place, time in enumerate(marks.times) if place and time in begun})


def _unrolled(marks: ThinnedPoints, begins: Collection[int]) -> ThinnedPoints:
    """Count on where a count begins again at a lower value; return the same object if none does."""
    values = marks.values
    lower = {place for place in begins if values[place] < values[place - 1]}
    if not lower:
        return marks
    offset, through = 0.0, []
    for place, value in enumerate(values):
        if place in lower:
            offset += values[place - 1]
        through.append(value + offset)
    counted = ThinnedPoints(marks.name, marks.limit)
    counted.times, counted.values, counted.steps = marks.times.copy(), through, marks.steps.copy()
    return counted
