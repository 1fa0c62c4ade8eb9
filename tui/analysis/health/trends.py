"""Detect a run that has become slow, and remark on a loss that no longer falls, or only in training.

The API publishes no power and no clocks. A throttled GPU shows as steps that take longer while the GPUs are
as busy as before.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import harmonic_mean, median

from tui.analysis.health.context import Context, finding
from tui.analysis.node_metrics import mean_known
from tui.analysis.progress.step_marks import numbered
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.series import Series, latest, mean_between
from tui.text.units import duration, number, percent

_BINS = 3  # A slow time consists of this many bins, each of them slow.
_EARLIER_BINS = 4  # Minimum number of bins before it, to know the usual speed.
_RECOVERED = 0.9  # A run that was as slow before and came back to this share of its speed does so by design.
_AS_LONG = 2.0  # … for up to this many times as long.
_RISING = 1.08  # A speed that rises by this much within the window is coming back.
_SAME_USE = 0.93  # GPUs busier than this share of before are as busy as before.
_MORE_MEMORY = 1.1  # Larger inputs use this much more GPU memory.
_NEAR, _PAUSE = 20, 4.0  # A step that takes this many times as long as those around it contains a pause.
_FLAT_PARTS = 4
_FLAT_SHARE = 0.004  # Losses within this share of each other are the same …
_ERRORS = 3.0  # … if their mean is known that well: within this many standard errors.
_MIN_LOSSES = 100
_FIRST_LOSSES = 5
_NEVER_FALLEN, _QUIET = 60, 0.02  # This many losses before, and at most so much noise, show that none fell.
_LEVEL = 3  # The level of an evaluation loss is the median of so many.
_SECOND_DIFFERENCE = 1.65  # Its median is this many deviations of the noise.
_FALLING = 0.99
_RESUMED = 0.1  # A run whose first step is beyond this share of its newest one may have learned before.
_FALLEN_BEFORE, _SMALL_FALLEN_BEFORE = 1.1, 1.5  # Losses below 1 (diffusion, regression) are noisy at first.
_SCHEDULED_END = 0.1  # At this share of the highest learning rate the loss has to be flat.
_NEARLY_DONE = 0.9


def slowdown(context: Context) -> Iterator[HealthFinding]:
    """Report a speed that was clearly below the usual one for all of the newest ``slowdown_window_s``."""
    rules, since = context.rules, context.training_since
    series, unit = context.progress.throughput_series
    if unit == "it/s":
        marks = context.progress.step_series
        series = _paced(marks if marks.times else numbered(context.progress.loss_series))
        unit = unit if marks.times else "lines/s"
    if since is None or not series.times:
        return
    bin_s = rules.slowdown_window_s / _BINS
    speeds = _mean_speeds(series, since + bin_s, series.times[-1], bin_s)
    if len(speeds) < _BINS + _EARLIER_BINS:
        return
    earlier, newest = speeds[:-_BINS], [speed for _, speed in speeds[-_BINS:]]
    usual = sorted(speed for _, speed in earlier)[3 * len(earlier) // 4]
    held = context.is_held(FindingKind.SLOWDOWN)
    share = context.with_hysteresis(rules.slowdown_share, 1.0, held=held)
    now = harmonic_mean(newest) if held else median(newest)
    rising = newest[-1] > _RISING * newest[0]
    # Once found, a run that is slow in bursts remains so as long as the whole window is slow.
    if (now if held else max(newest)) >= share * usual or (rising and not held):
        return
    began = speeds[-_BINS][0]
    for time, speed in reversed(earlier):
        if speed >= share * usual:
            break
        began = time
    slow_bins = (speeds[-1][0] - began) / bin_s + 1
    if not held and slow_bins <= _AS_LONG * _longest_recovered(earlier, now, usual):
        return
    cause = _cause(context, began, in_tokens=unit == "tok/s")
    if cause is None:
        return
    short = f"{percent(1 - now / usual)} slower: {number(now)} {unit}, was {number(usual)}"
    yield finding(FindingKind.SLOWDOWN, "warning", f"{short}; {cause}", short=short, since_s=began)


def _paced(marks: Series) -> Series:
    """Return the speed at each count, without those that span a pause: printed speeds omit pauses, too."""
    times, values = marks.times, marks.values
    speeds = [
        (times[place], (values[place] - values[place - 1]) / (times[place] - times[place - 1]))
        for place in range(1, len(times))
        if times[place] > times[place - 1] and values[place] > values[place - 1]
    ]
    kept: list[tuple[float, float]] = []
    for first in range(0, len(speeds), _NEAR):
        near = speeds[first : first + _NEAR]
        usual = median(speed for _, speed in near)
        kept += [one for one in near if one[1] * _PAUSE >= usual]
    return Series("steps/s", tuple(time for time, _ in kept), tuple(speed for _, speed in kept))


def _mean_speed(speeds: Sequence[float]) -> float:
    """Return the speed over all of the work: slow steps in bursts count as long as they take."""
    positive = sorted(speed for speed in speeds if speed > 0)
    return harmonic_mean(positive[len(positive) > 2 :]) if positive else 0.0


def _mean_speeds(series: Series, start: float, end: float, bin_s: float) -> list[tuple[float, float]]:
    """Return the start and the mean speed of each bin that has values; the last bin ends with ``end``."""
    found = []
    count = max(0, int((end - start) // bin_s))
    edges = [bisect_left(series.times, end - place * bin_s + 1e-6) for place in range(count, -1, -1)]
    for place, (first, last) in enumerate(pairwise(edges)):
        if last > first:
            found.append((end - (count - place) * bin_s, _mean_speed(series.values[first:last])))
    return found


def _longest_recovered(earlier: Sequence[tuple[float, float]], now: float, usual: float) -> int:
    """Return in how many bins the run was as slow before, until it came back to its speed by itself."""
    longest = slow = 0
    for _, speed in earlier:
        if speed >= _RECOVERED * usual:
            longest, slow = max(longest, slow), 0
        elif slow or speed <= (1 + now / usual) / 2 * usual * _RECOVERED:
            slow += 1
    return longest if longest >= _BINS - 1 else 0


def _cause(context: Context, began: float, *, in_tokens: bool) -> str | None:
    """Return what the metrics say of a slow time since then; None if it is more work, not less speed."""
    nodes, at = context.metrics.nodes, context.metrics.at or began
    before = began - 4 * context.rules.slowdown_window_s
    memory = [
        (mean_between(node.mean_memory, before, began), mean_between(node.mean_memory, began, at))
        for node in nodes
    ]
    lengths = context.progress.input_length_series
    memory.append((mean_between(lengths, before, began), mean_between(lengths, began, at)))
    grown = any(old is not None and new is not None and new > _MORE_MEMORY * old for old, new in memory)
    if not in_tokens and (grown or context.progress.moving_target):
        return None  # Longer inputs, or longer answers: a step is more work than before.
    old = mean_known(mean_between(node.mean_utilization, before, began) for node in nodes)
    new = mean_known(mean_between(node.mean_utilization, began, at) for node in nodes)
    if old is None or new is None:
        return "see what has changed"
    if new >= _SAME_USE * old:
        return f"GPUs {percent(new)} busy as before: throttled, or larger inputs"
    return f"GPUs {percent(new)} busy, were {percent(old)}: waiting for data or the network"


def plateau(context: Context) -> Iterator[HealthFinding]:
    """Remark that the loss has not moved for ``plateau_after_s``, although it fell before."""
    progress, since = context.progress, context.training_since
    losses = progress.loss_series
    window_s = context.rules.plateau_after_s
    if since is None or progress.moving_target or (progress.fraction or 0.0) > _NEARLY_DONE:
        return
    end = context.now_s
    first = bisect_left(losses.times, end - window_s)
    part = [value for value in losses.values[first:] if math.isfinite(value)]
    begun = losses.values[bisect_left(losses.times, since) : first]
    if len(part) < _MIN_LOSSES or not any(map(math.isfinite, begun[:_FIRST_LOSSES])):
        return
    if losses.times[first] > end - 0.9 * window_s:
        return
    size = len(part) // _FLAT_PARTS
    means = [sum(part[n * size : (n + 1) * size]) / size for n in range(_FLAT_PARTS)]
    level = sum(means) / _FLAT_PARTS
    noise = median(abs(later - value) for value, later in pairwise(part)) * 1.05 / math.sqrt(size)
    near = max(_FLAT_SHARE * abs(level), _ERRORS * noise)
    flat = max(means) - min(means) <= near * (2 if context.is_held(FindingKind.PLATEAU) else 1)
    known = _ERRORS * noise <= _FLAT_SHARE * 4 * abs(level)
    rates = progress.learning_rate_series
    rate = latest(rates)
    ends = rate is not None and rate < _SCHEDULED_END * max(rates.values)
    highest = median(filter(math.isfinite, begun[:_FIRST_LOSSES]))
    earlier = list(filter(math.isfinite, begun))
    quiet = len(earlier) >= _NEVER_FALLEN and noise * math.sqrt(size) <= _QUIET * abs(level)
    steps = progress.step_series.values
    resumed = bool(steps) and steps[0] > _RESUMED * steps[-1]
    never = quiet and not resumed and all(abs(one - level) <= near for one in (median(earlier), highest))
    fallen = _FALLEN_BEFORE if level >= 1 else _SMALL_FALLEN_BEFORE
    if flat and known and not ends and (never or highest > fallen * level):
        text = f"loss has been flat at {number(level)} for {duration(window_s)} or longer"
        text += ", since the first step" if never else ""
        short = f"loss flat at {number(level)}"
        yield finding(FindingKind.PLATEAU, "info", text, short=short, since_s=end - window_s)


def overfitting(context: Context) -> Iterator[HealthFinding]:
    """Remark that the evaluation loss has risen for several evaluations while the training loss falls."""
    progress, rules = context.progress, context.rules
    series, since = progress.eval_loss_series, context.attempt_since
    known = [
        (time, value)
        for time, value in zip(series.times, series.values, strict=True)
        if math.isfinite(value) and time >= since
    ]
    times, values = [time for time, _ in known], [value for _, value in known]
    levels = [median(values[place : place + _LEVEL]) for place in range(len(values) - _LEVEL + 1)]
    if progress.moving_target or len(levels) <= rules.overfit_evaluations:
        return
    best = min(levels)
    place = levels.index(best)
    bends = [abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    noise = median(bends) / _SECOND_DIFFERENCE
    share = context.with_hysteresis(rules.overfit_share, 0.0, held=context.is_held(FindingKind.OVERFITTING))
    newest = levels[-rules.overfit_evaluations :]
    risen = newest[-1] > best + max(share * abs(best), _ERRORS * noise)
    still = newest[-1] >= max(newest) - noise and min(newest) > best + noise
    if not risen or not still or not _falls(progress.loss_series, times, place):
        return
    steps = progress.step_series
    at = bisect_right(steps.times, times[place + 1]) - 1
    where = f" at step {steps.values[at]:.0f}" if at >= 0 else ""
    text = f"evaluation loss rises while the training loss falls: {number(newest[-1])}, was {number(best)}"
    short = f"eval loss rises: {number(newest[-1])}, was {number(best)}"
    yield finding(
        FindingKind.OVERFITTING, "info", text + where, short=short + where, since_s=times[place + 1]
    )


def _falls(losses: Series, evaluated: Sequence[float], best: int) -> bool:
    """Return True if the training loss is lower than it was around the best evaluation."""
    first, last = (bisect_left(losses.times, evaluated[at]) for at in (best, best + _LEVEL - 1))
    before = list(filter(math.isfinite, losses.values[first:last]))
    newest = list(filter(math.isfinite, losses.values[bisect_left(losses.times, evaluated[-_LEVEL]) :]))
    if not before or not newest:
        return False
    return median(before) - median(newest) > (1 - _FALLING) * abs(median(before))
