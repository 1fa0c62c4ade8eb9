"""Derive the steps of a run from the counts in its lines, and its total, speed, restarts and ETA.

Lines name their step, or a progress bar counts steps. Bars may count something else, such as an evaluation,
and counts may restart with every epoch or rollout, while the steps of the run continue.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median, median_high, stdev

from tui.analysis.progress.points import ThinnedPoints
from tui.analysis.series import Series

Source = int
"""What counts: ``NAMED``, a bar (its total), or a count within epochs (the negative epoch length)."""

NAMED: Source = 0
"""The source of lines that name their step."""

Counts = Mapping[Source, ThinnedPoints]

RECENT_S = 300.0
"""Window (s) of the current speed."""

LONG_S = 1800.0
"""Window (s) of the speed used for the ETA: long enough to include evaluations and saves."""

MIN_RESTART_GAP_S = 600.0
"""An announcement and a fall of the step less than this later are one restart."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a run over time, and the last one if it is known."""

    series: Series
    offsets: Sequence[float]
    """What was added to each count because counts restart; empty if they don't."""
    total: int | None
    starts_over: bool
    """True if the count starts over repeatedly, so that it is not the run's."""

    @property
    def newest(self) -> int:
        return int(self.series.values[-1])

    @property
    def newest_at(self) -> float:
        """Time of the first line with the newest step."""
        return first_marks(self.series).times[-1]


def _merge_named(counts: Mapping[Source | str, ThinnedPoints], losses: ThinnedPoints) -> Counts:
    """Return counts by source, with only one named count: lines may name both iterations and steps.

    Choose the count that changes most often between losses, or else most often, since the newest named count
    began: the count of an earlier stage no longer changes.
    """
    named = [points for source, points in counts.items() if isinstance(source, str)]
    bars = {source: points for source, points in counts.items() if isinstance(source, int)}
    if not named:
        return bars
    began_at = max(points.times[0] for points in named)

    def importance(points: ThinnedPoints) -> tuple[int, int, int]:
        values = points.values[bisect_left(points.times, began_at) :]
        changes = sum(before != value for before, value in pairwise(values))
        since = [began_at, *losses.times[bisect_left(losses.times, began_at) :][-10:]]
        changes_between_losses = sum(
            points.before(earlier) != points.before(later) for earlier, later in pairwise(since)
        )
        return changes_between_losses, changes, points.added

    return bars | {NAMED: named[0] if len(named) == 1 else max(named, key=importance)}


def steps_of(
    by_source: Mapping[Source | str, ThinnedPoints],
    losses: ThinnedPoints,
    fields: Mapping[str, ThinnedPoints],
) -> Steps | None:
    """Return the steps of the run; None if nothing counts them."""
    counts = _merge_named(by_source, losses)
    source = _training_source(counts, losses)
    if source is None:
        return None
    points = counts[source]
    newest_values = {name: curve.values[-1] for name, curve in fields.items() if curve}
    offsets: list[float] = []
    is_within_epoch = source < 0 and points.epochs[-1] is None
    if is_within_epoch:
        headings = fields.get("whole epochs", ThinnedPoints(""))
        positions = (headings.before(time) for time in points.times)
        offsets = [0.0 if position is None else -source * headings.values[position] for position in positions]
    resets = _reset_positions(_with_offsets(points, offsets), abs(source) or newest_values.get("total_steps"))
    starts_over = len(resets) >= 2
    if not any(offsets):
        pairs = enumerate(pairwise(points.epochs), start=1)
        epochs = [
            n for n, (before, epoch) in pairs if before is not None and epoch is not None and before < epoch
        ]
        offsets = _offsets_at_resets(points.values, epochs) or (
            _offsets_at_resets(points.values, resets) if starts_over else offsets
        )
    series = _with_offsets(points, offsets)
    total = None if starts_over else _total(source, int(series.values[-1]), counts, newest_values)
    return Steps(series, offsets, total, starts_over)


def _with_offsets(points: ThinnedPoints, offsets: Sequence[float]) -> Series:
    """Return the counts with their offsets added; the points' own series if there are none."""
    series = points.series()
    if not offsets:
        return series
    values = (value + offset for value, offset in zip(points.values, offsets, strict=True))
    return Series(series.name, series.times, tuple(values))


def _training_source(counts: Counts, losses: ThinnedPoints) -> int | None:
    """Choose the source of the run's steps: that which moves most between losses; on a tie, named steps.

    So a bar wins over lines that name a step only rarely (Lightning's checkpoints). While there are no
    losses, the first bar is the run's, and a bar that begins after its end is a new stage.
    """
    moves = {source: _moves_between_losses(points, losses) for source, points in counts.items()}
    # An evaluation has a bar too, but few losses are printed around it.
    moving_sources = [source for source in counts if moves[source] * 8 > min(10, losses.added)]
    if moving_sources:
        inner = max(moving_sources, key=lambda source: (moves[source], source == NAMED, abs(source)))
        return _enclosing_bar(inner, counts)
    if NAMED in counts or losses.added >= 3:
        return NAMED if NAMED in counts else None
    chosen: int | None = None
    for source in sorted(counts, key=lambda bar: (counts[bar].times[0], -abs(bar))):
        if chosen is None or counts[source].times[0] > counts[chosen].times[-1]:
            chosen = source
    return chosen


def _moves_between_losses(points: ThinnedPoints, losses: ThinnedPoints) -> int:
    """Return how many of the newest ten losses follow a change of the count."""
    between = list(pairwise([-math.inf, *losses.times[-11:]]))[-10:]
    return sum(points.before(earlier) != points.before(later) for earlier, later in between)


def _enclosing_bar(inner: int, counts: Counts) -> int:
    """Return the outer bar if this one restarts repeatedly while another continues, as in OpenRLHF."""
    resets = _reset_positions(counts[inner], abs(inner))
    if len(resets) < 2:
        return inner
    began_at, newest = (counts[inner].times[resets[position]] for position in (0, -2))
    outer = [
        source
        for source, points in counts.items()
        if points.times[0] <= began_at
        and points.times[-1] >= newest
        and points.values[0] == min(points.values)
        and not _reset_positions(points, abs(source))
    ]
    return max(outer, key=lambda source: counts[source].added, default=inner)


def _reset_positions(points: ThinnedPoints | Series, total: float | None) -> list[int]:
    """Return the positions at which a nearly complete count restarts, as for an epoch or a rollout."""
    if not total:
        return []
    pairs = enumerate(pairwise(points.values), start=1)
    return [n for n, (before, step) in pairs if step <= 0.5 * before and before >= 0.8 * total]


def _offsets_at_resets(values: Sequence[float], begins: Iterable[int]) -> list[float]:
    """Return what to add to each count so that it continues where it restarts lower; empty if never."""
    lower = {index for index in begins if values[index] < values[index - 1]}
    ends = (values[index - 1] if index in lower else 0.0 for index in range(len(values)))
    return list(accumulate(ends)) if lower else []


def _total(source: int, step: int, counts: Counts, newest: Mapping[str, float]) -> int | None:
    of_epochs = (-source or newest.get("epoch_steps", 0.0)) * newest.get("total_epochs", 0.0) or None
    total = float(source) if source > 0 else of_epochs if source < 0 else newest.get("total_steps", of_epochs)
    if source == NAMED and (total is None or total < step):
        # A bar counts the same steps as the lines if it is close to the newest of them.
        near = max(10.0, step * 0.05)
        bars = (bar for bar in counts if bar >= max(1, step) and abs(counts[bar].values[-1] - step) <= near)
        total = max(bars, default=None)
    return None if total is None or total < step else int(total)


def slope(marks: Series, first: int, last: int) -> float | None:
    """Return steps per second between two marks; ``None`` if the step did not increase."""
    spent = marks.times[last] - marks.times[first]
    done = marks.values[last] - marks.values[first]
    return done / spent if spent > 0 and done > 0 else None


def window_start(marks: Series, window_s: float) -> int:
    """Return the index of the first mark in the window before the last mark, after any restart."""
    times, steps = marks.times, marks.values
    last = len(times) - 1
    first = last
    oldest = times[last] - window_s
    while first and steps[first - 1] <= steps[first]:
        if times[first - 1] < oldest and last - first >= 5:
            break
        first -= 1
    return first


def speed(marks: Series, window_s: float) -> float | None:
    return slope(marks, window_start(marks, window_s), len(marks) - 1)


def is_ordered(marks: ThinnedPoints | Series) -> bool:
    """Return False if the newest counts have no order, as when people or services mention steps.

    A trainer's count rises. If it often falls (short epochs, a crash loop, ranks out of order), it changes
    by the same amounts repeatedly.
    """
    moves = [later - before for before, later in pairwise(marks.values[-256:]) if later != before]
    ahead, back = Counter(move for move in moves if move > 0), Counter(move for move in moves if move < 0)
    if ahead.total() >= 2 * back.total():
        return True
    return max(ahead.values(), default=0) > 2 and all(
        2 * max(side.values()) >= side.total() for side in (ahead, back)
    )


def numbered(series: Series) -> Series:
    """Replace the values of a series by their index, which stands in for steps if lines have none."""
    return Series(series.name, series.times, tuple(map(float, range(len(series)))))


def first_marks(marks: ThinnedPoints | Series) -> Series:
    """Return the first mark of each step: every rank may print each."""
    times: list[float] = []
    steps: list[float] = []
    for time, step in zip(marks.times, marks.values, strict=True):
        if not steps or step > steps[-1] or step <= steps[-1] - 2:
            times.append(time)
            steps.append(step)
    return Series(marks.name, tuple(times), tuple(steps))


def usual_interval(marks: ThinnedPoints | Series) -> float | None:
    """Return the median time between the newest steps."""
    intervals = [later - earlier for earlier, later in pairwise(first_marks(marks).times[-50:])]
    return median_high(intervals) if intervals else None


def rates(marks: Series, count: int = 240) -> Series:
    """Return steps per second over time, between equally spaced marks; none across a restart.

    A chart has no more than 240 columns.
    """
    first = first_marks(marks)
    # With several lines per step, the oldest one read need not be the first of its step.
    is_cut = len(first) < len(marks)
    times, steps = first.times[is_cut:], first.values[is_cut:]
    if len(times) < 2:
        return Series("steps/s")
    width = (times[-1] - times[0]) / min(count, len(times) - 1)
    ends = {bisect_right(times, times[0] + number * width) - 1 for number in range(count)}
    pairs = [
        (start, end)
        for start, end in pairwise(sorted({*ends, len(times) - 1}))
        if times[end] > times[start] and steps[end] >= steps[start]
    ]
    speeds = ((steps[end] - steps[start]) / (times[end] - times[start]) for start, end in pairs)
    return Series("steps/s", tuple(times[end] for _, end in pairs), tuple(speeds))


def eta_s(steps: Steps, printed_speed: float | None) -> tuple[float | None, float | None, float | None]:
    """Return the seconds from the newest step to the last one, and their minimum and maximum."""
    marks = steps.series
    lasting = speed(marks, LONG_S) or printed_speed
    if steps.total is None or lasting is None:
        return None, None, None
    left = max(0, steps.total - steps.newest)
    speeds = (speed(marks, RECENT_S) or printed_speed, lasting, slope(marks, 0, len(marks) - 1))
    finite = [value for value in speeds if value is not None and value > 0 and math.isfinite(value)]
    first = window_start(marks, LONG_S)
    # Two standard errors: the true end is within the range for about 19 of 20 steady runs.
    share = 1 + max(0.02, 2 * _relative_error(Series("", marks.times[first:], marks.values[first:])))
    return left / lasting, left / (max(finite) * share), left / (min(finite) / share)


def _relative_error(marks: Series) -> float:
    """Return the relative standard error of the mean speed over equal time ranges."""
    speeds = rates(marks, 8).values
    mean = fmean(speeds) if speeds else 0.0
    return stdev(speeds) / math.sqrt(len(speeds)) / mean if len(speeds) > 1 and mean > 0 else 0.25


def restarts(marks: Series, announced: Sequence[float]) -> tuple[float, ...]:
    """Return the times of restarts: announced ones, and those that only the steps show (all in epoch s)."""
    # Loading may take long: a restart ends with the first step after it was announced.
    unannounced = {
        at for before, at in _falls(marks) if bisect_left(announced, before) == bisect_left(announced, at)
    }
    apart: list[float] = []
    for time in sorted({*announced, *unannounced}):
        fell_twice = {time, *apart[-1:]} <= unannounced
        if not apart or time - apart[-1] > MIN_RESTART_GAP_S or fell_twice:
            apart.append(time)
    return tuple(apart)


def _falls(marks: Series) -> list[tuple[float, float]]:
    """Return the times of the steps before and after which the run resumed at an earlier one."""
    times, steps = marks.times, marks.values
    falls = [
        index
        for index in range(1, len(times))
        # Without a pause, it is ranks out of order. A single higher count comes from an unrelated line.
        if steps[index] <= min(steps[max(0, index - 2) : index]) - 2
        and times[index] - times[index - 1] >= 15.0
    ]
    usual = median(abs(later - before) for before, later in pairwise(steps)) if falls else 0.0
    # A single outlier (0/900 between 850 and 900) is no restart: no run catches up on twice its usual change
    # by the next count.
    return [
        (times[index - 1], times[index])
        for index in falls
        if steps[index - 1] - steps[index] <= 2.0 * usual
        or (index + 1 < len(steps) and steps[index - 1] > steps[index + 1])
    ]
