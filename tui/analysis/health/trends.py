"""Detect a run that has become slow, and remark on a loss that no longer falls.

The API publishes no power and no clocks. A throttled GPU shows as steps that take longer while the GPUs are
as busy as before.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from tui.analysis.health.context import Context, finding
from tui.analysis.node_metrics import mean_known
from tui.analysis.progress.step_marks import numbered, rates
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.series import Series, latest, mean_between
from tui.text.units import duration, number, percent

_BINS = 3  # A slow time consists of this many bins, each of them slow.
_EARLIER_BINS = 4  # Minimum number of bins before it, to know the usual speed.
_RECOVERED = 0.9  # A run that was as slow before and came back to this share of its speed does so by design.
_RISING = 1.08  # A speed that rises by this much within the window is coming back.
_SAME_USE = 0.93  # GPUs busier than this share of before are as busy as before.
_MORE_MEMORY = 1.1  # Larger inputs use this much more GPU memory.
_FLAT_PARTS = 4
_FLAT_SHARE = 0.004  # Losses within this share of each other are the same …
_ERRORS = 3.0  # … if their mean is known that well: within this many standard errors.
_MIN_LOSSES = 200
_FIRST_LOSSES = 20
_FALLEN_BEFORE = 1.1
_SCHEDULED_END = 0.1  # At this share of the highest learning rate the loss has to be flat.
_NEARLY_DONE = 0.9


def slowdown(context: Context) -> Iterator[HealthFinding]:
    """Report a speed that was clearly below the usual one for all of the newest ``slowdown_window_s``."""
    rules, since = context.rules, context.training_since
    series, unit = context.progress.throughput_series
    if not series.times:
        series, unit = rates(numbered(context.progress.loss_series)), "lines/s"
    if since is None or not series.times:
        return
    bin_s = rules.slowdown_window_s / _BINS
    speeds = _medians(series, since + bin_s, series.times[-1], bin_s)
    if len(speeds) < _BINS + _EARLIER_BINS:
        return
    earlier, newest = speeds[:-_BINS], [speed for _, speed in speeds[-_BINS:]]
    usual = sorted(speed for _, speed in earlier)[3 * len(earlier) // 4]
    held = context.is_held(FindingKind.SLOWDOWN)
    share = context.with_hysteresis(rules.slowdown_share, 1.0, held=held)
    now = median(newest)
    rising = newest[-1] > _RISING * newest[0]
    if max(newest) >= share * usual or (rising and not held) or _recovered(earlier, now, usual):
        return
    began = speeds[-_BINS][0]
    for time, speed in reversed(earlier):
        if speed >= share * usual:
            break
        began = time
    cause = _cause(context, began, in_tokens=unit == "tok/s")
    if cause is None:
        return
    short = f"{1 - now / usual:.0%} slower: {number(now)} {unit}, was {number(usual)}"
    yield finding(FindingKind.SLOWDOWN, "warning", f"{short}; {cause}", short=short, since_s=began)


def _medians(series: Series, start: float, end: float, bin_s: float) -> list[tuple[float, float]]:
    """Return the start and the median of each bin that has values; the last bin ends with ``end``."""
    found = []
    count = max(0, int((end - start) // bin_s))
    edges = [bisect_left(series.times, end - place * bin_s + 1e-6) for place in range(count, -1, -1)]
    for place, (first, last) in enumerate(pairwise(edges)):
        if last > first:
            found.append((end - (count - place) * bin_s, median(series.values[first:last])))
    return found


def _recovered(earlier: Sequence[tuple[float, float]], now: float, usual: float) -> bool:
    """Return True if the run was as slow before for as long, and came back to its speed by itself."""
    slow = 0
    for _, speed in earlier:
        if slow >= _BINS - 1 and speed >= _RECOVERED * usual:
            return True
        slow = slow + 1 if speed <= (1 + now / usual) / 2 * usual * _RECOVERED else 0
    return False


def _cause(context: Context, began: float, *, in_tokens: bool) -> str | None:
    """Return what the metrics say of a slow time since then; None if it is more work, not less speed."""
    nodes, at = context.metrics.nodes, context.metrics.at or began
    before = began - 4 * context.rules.slowdown_window_s
    memory = [
        (mean_between(node.mean_memory, before, began), mean_between(node.mean_memory, began, at))
        for node in nodes
    ]
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
    if flat and known and not ends and highest > _FALLEN_BEFORE * level:
        text = f"loss has been flat at {number(level)} for {duration(window_s)} or longer"
        short = f"loss flat at {number(level)}"
        yield finding(FindingKind.PLATEAU, "info", text, short=short, since_s=end - window_s)
