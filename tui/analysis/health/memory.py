"""Detect memory and storage that grow steadily, or are nearly full, and predict when they are full.

Caches that are collected and checkpoints that are pruned make a sawtooth. So growth counts only above the
level from which the same series fell back before.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from tui.analysis.health.context import Context, finding, growth_started_at, start_of_condition
from tui.analysis.run.finding import FindingKind, HealthFinding, Severity
from tui.analysis.series import Series, latest, mean_between, value_range
from tui.text.units import BYTES_PER_MIB, bytes_iec, duration, percent

PARTS = 4
"""Number of parts that a window is split into; steady growth must show in each of them."""

MIN_GROWTH_SHARE = 0.4
"""Minimum growth of each part, as a fraction of the average part. A burst grows in one part only."""


DECELERATING = 0.75
"""Growth below this fraction of that in the window before is coming to its end, as a cache that fills."""

PREDICTED_FROM = 0.5
"""Nothing is predicted below this share of the limit: there is time, and more to learn from."""

NEAR_SHARE, NEAR_S, LONG_S = 0.8, 1200.0, 7200.0
"""Growth becomes a finding above this share of the limit, this long before it is full, or once it lasts: a
cache, a copy of the data, or the first tooth of a saw ends before."""


class _Rule(NamedTuple):
    """Growth matters by this share of the limit in a window, if the limit is reached within that time."""

    window_s: float
    growth: float
    full_within_s: float


class _Forecast(NamedTuple):
    """Significant growth per second, the time until the limit, and since when it grows (epoch s)."""

    rate: float
    full_in_s: float
    since: float


def _forecast(
    context: Context, series: Series, limit: float, rule: _Rule, *, held: bool, used: float = 0.0
) -> _Forecast | None:
    """Return when a series that grows steadily reaches its limit, None unless that matters.

    ``used`` is its newest value; without it, the level of its growth counts. While a model loads or is
    downloaded, memory and disks fill without meaning anything.
    """
    at, window_s = context.metrics.at or 0.0, rule.window_s
    grown = _steady_growth(series, at, window_s) if limit else None
    if grown is None or (began := context.growth_since) is None or at - window_s < began:
        return None
    line_rate, level = grown
    used = used or level
    if used < PREDICTED_FROM * limit or not (held or _keeps_growing(series, line_rate, at, window_s)):
        return None
    rate = _growth_beyond(context, series, line_rate, window_s, limit, held=held)
    if rate is None:
        return None
    full_in_s = max(0.0, limit - max(level, used)) / rate
    since = growth_started_at(series, at, line_rate, level, window_s)
    if (
        line_rate * window_s >= context.with_hysteresis(rule.growth, 0.0, held=held) * limit
        and full_in_s <= rule.full_within_s * (1 + context.rules.release if held else 1)
        and not context.ends_before(full_in_s)
        and (held or used >= NEAR_SHARE * limit or full_in_s <= NEAR_S or at - since >= LONG_S)
    ):
        return _Forecast(rate, full_in_s, since)
    return None


def _keeps_growing(series: Series, rate: float, at: float, window_s: float) -> bool:
    """Return False if growth has slowed down since the window before."""
    middle = mean_between(series, at - 1.25 * window_s, at - window_s)
    before = mean_between(series, at - 2 * window_s, at - 1.75 * window_s)
    return middle is None or before is None or rate * 0.75 * window_s >= DECELERATING * (middle - before)


def _steady_growth(series: Series, at: float, window_s: float) -> tuple[float, float] | None:
    """Return the growth per second and the level of a series that grew until ``at``, else None.

    None if it did not, or if its samples do not cover the window.
    """
    if not series.times or series.times[0] > at - window_s * (1 - 0.5 / PARTS):
        return None
    part_s = window_s / PARTS
    first, last = (
        mean_between(series, at - window_s, at - window_s + part_s),
        mean_between(series, at - part_s, at),
    )
    if first is None or last is None or last <= first:
        return None  # Return early, since this is by far the most common case.
    means = [
        mean_between(series, at - (PARTS - part) * part_s, at - (PARTS - part - 1) * part_s)
        for part in range(PARTS)
    ]
    known = [mean for mean in means if mean is not None]
    if len(known) < PARTS:
        return None
    added = [later - earlier for earlier, later in itertools.pairwise(known)]
    average = (known[-1] - known[0]) / len(added)
    if average <= 0 or min(added) < MIN_GROWTH_SHARE * average:
        return None
    return _line(series, at - window_s, at)


def _line(series: Series, start: float, end: float) -> tuple[float, float] | None:
    """Fit a straight line by least squares; return its slope and its value at the end."""
    places = range(bisect_left(series.times, start), bisect_right(series.times, end))
    points = [
        (series.times[place] - end, series.values[place])
        for place in places
        if series.values[place] == series.values[place]
    ]
    count = len(points)
    time_mean = sum(time for time, _ in points) / count
    value_mean = sum(value for _, value in points) / count
    spread = sum((time - time_mean) ** 2 for time, _ in points)
    if spread <= 0:
        return None
    slope = sum((time - time_mean) * (value - value_mean) for time, value in points) / spread
    return (slope, value_mean - slope * time_mean) if slope > 0 else None


FALLEN_SHARE = 0.5
"""Minimum fall of a sawtooth, as a share of the growth within the current window."""

BEYOND_SHARE = 0.5
"""Growth exceeds an earlier sawtooth when it is above its top by this share of its fall."""

BEYOND_NOISE = 4.0
"""… and by more than this many times the noise of its samples: of two equal tops one is always the higher."""

NEARLY_FULL = 0.98
"""A fall from above this share of the limit is not reassuring: a crash may have caused it."""


class _Sawtooth(NamedTuple):
    """The highest level that a series fell back from, the time, and the size of the fall."""

    top: float
    at: float
    height: float


def _earlier_sawtooth(
    series: Series, since: float, until: float, *, least: float, below: float
) -> _Sawtooth | None:
    """Return the highest peak between two times (epoch s) from which the series fell by at least ``least``.

    Peaks at ``below`` or higher do not count. None if it never fell that far.
    """
    found: _Sawtooth | None = None
    top = at = lowest = math.nan
    for place in range(bisect_left(series.times, since), len(series.times)):
        time, value = series.times[place], series.values[place]
        if value != value:
            continue
        if top != top or value > top or (value - lowest >= least and top - lowest >= least):
            # Higher than before, or rising again after a fall: another tooth of the saw.
            if time > until:
                break
            top, at, lowest = value, time, value
            continue
        lowest = min(lowest, value)
        if top - lowest >= least and top < below and (found is None or top >= found.top):
            found = _Sawtooth(top, at, top - lowest)
    return found


def _growth_beyond(
    context: Context, series: Series, rate: float, window_s: float, limit: float, *, held: bool
) -> float | None:
    """Return the part of the growth per second that is significant.

    It is less if the series grew like this before and fell back, and None if the level is one that it
    fell back from before. Anything before the last restart is ignored, because a crash empties
    everything. For a held finding a fall within the window is forgiven, so that a series that rises and
    half falls back does not make the finding come and go.
    """
    at = context.metrics.at or 0.0
    until = at - window_s if held else at
    least = FALLEN_SHARE * rate * window_s
    swing = _earlier_sawtooth(series, context.attempt_since, until, least=least, below=NEARLY_FULL * limit)
    if swing is None:
        return rate
    since = [value for value in series.values[bisect_right(series.times, swing.at) :] if value == value]
    beyond = max(since, default=swing.top) - swing.top
    if beyond >= BEYOND_SHARE * swing.height:
        return rate
    return min(rate, beyond / (at - swing.at)) if beyond > BEYOND_NOISE * _noise(since) else None


def _noise(values: Sequence[float]) -> float:
    """Return how much single samples scatter about their neighbours."""
    triples = zip(values, values[1:], values[2:], strict=False)
    bends = [abs(first - 2 * middle + last) / 2 for first, middle, last in triples]
    return median(bends) if bends else 0.0


_LONG_WINDOWS = 4  # Growth in bursts shows only over a longer time.
_URGENT_S = 3600.0
_STEP_SHARE, _STEPS_LEFT = 0.4, 1.75  # A step is so much of the growth; so many of them must fit.


def storage(context: Context) -> Iterator[HealthFinding]:
    metrics = context.metrics
    if metrics.at is None:
        return
    several = len(metrics.nodes) > 1
    for node in metrics.nodes:
        name = f"disk of {node.name}" if several else "disk"
        yield from _volume(
            context, FindingKind.DISK_FILLING, node.disk_utilization, name, node.name if several else None
        )
    yield from _volume(context, FindingKind.CACHE_FILLING, metrics.cache_utilization, "cache", None)


def _volume(
    context: Context, kind: FindingKind, utilization: Series, name: str, node: str | None
) -> Iterator[HealthFinding]:
    rules, used = context.rules, latest(utilization)
    if used is None:
        return
    held = context.is_held(kind, node)
    for window_s in (rules.disk_window_s, _LONG_WINDOWS * rules.disk_window_s):
        rule = _Rule(window_s, rules.disk_growth, rules.disk_full_within_s)
        ahead = _forecast(context, utilization, 1.0, rule, held=held, used=used)
        if ahead is not None and not _has_room(utilization, used, window_s, ahead.rate):
            # A run's first checkpoints may be pruned in time: only what is nearly full is sure to fill.
            urgent = ahead.full_in_s < _URGENT_S and used >= rules.disk_share
            severity: Severity = "critical" if urgent else "warning"
            full = duration(ahead.full_in_s)
            text, short = f"{name} is {percent(used)} full, will be full in {full}", f"{name} full in {full}"
            yield finding(kind, severity, text, short=short, node=node, since_s=ahead.since)
            return
    limit = context.with_hysteresis(rules.disk_share, rules.disk_share - 0.1, held=held)
    if used >= limit:
        full_since = start_of_condition(utilization, lambda value: value >= limit)
        yield finding(kind, "warning", f"{name} is {percent(used)} full", node=node, since_s=full_since)


def _has_room(utilization: Series, used: float, window_s: float, rate: float) -> bool:
    """Return True if usage grew in steps and the next one fits: old checkpoints may be pruned in time."""
    first = bisect_left(utilization.times, utilization.times[-1] - window_s)
    step = max(
        (later - before for before, later in itertools.pairwise(utilization.values[first:])), default=0.0
    )
    return step >= _STEP_SHARE * rate * window_s and (1 - used) >= _STEPS_LEFT * step


def gpu_memory(context: Context) -> Iterator[HealthFinding]:
    """Report GPUs whose memory has been near its limit for a while, in a single finding."""
    metrics, rules = context.metrics, context.rules
    limit = (context.run.job.instance_type.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    at = metrics.at
    if not limit or at is None:
        return
    held = bool(context.held_nodes(FindingKind.GPU_MEMORY))
    # Healthy is a tenth below the limit, the room that PyTorch's caching allocator leaves.
    threshold = limit * context.with_hysteresis(rules.gpu_memory_share, 0.9, held=held)
    start = at - rules.gpu_memory_after_s
    near: list[tuple[float, str, str]] = []
    since = start
    for node in metrics.nodes:
        for gpu, series in zip(node.gpus, node.gpu_memory, strict=True):
            lowest = _lowest_since(series, start)
            if lowest is not None and lowest >= threshold:
                near.append((lowest / limit, node.name, gpu))
                since = min(since, start_of_condition(series, lambda value: value >= threshold) or since)
    if not near:
        return
    share, name, gpu = max(near)
    more = f" and {len(near) - 1} more" if len(near) > 1 else ""
    text = f"GPU memory at {percent(share)} of {bytes_iec(limit)}: {name} GPU {gpu}{more}"
    yield finding(
        FindingKind.GPU_MEMORY,
        "warning",
        text,
        short=f"GPU memory {percent(share)} full: {name} GPU {gpu}{more}",
        node=name if len(metrics.nodes) > 1 and len(near) == 1 else None,
        since_s=since,
    )


def leaks(context: Context) -> Iterator[HealthFinding]:
    """Report memory of a GPU or node that grows steadily and will be full before the run ends."""
    rules, machine = context.rules, context.run.job.instance_type
    gpu_limit = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    host_limit = (machine.memory_limit_mib or 0) * BYTES_PER_MIB
    rule = _Rule(rules.leak_window_s, rules.leak_share, rules.leak_full_within_s)
    held = bool(context.held_nodes(FindingKind.MEMORY_LEAK))
    found: list[tuple[str, str, _Forecast]] = []
    for node in context.metrics.nodes:
        gpus = zip(node.gpus, node.gpu_memory, strict=True)
        places = [(f"GPU memory of {node.name} GPU {gpu}", series, gpu_limit) for gpu, series in gpus]
        for place, series, limit in (*places, (f"memory of {node.name}", node.cpu_memory, host_limit)):
            ahead = _forecast(context, series, limit, rule, held=held)
            if ahead is not None:
                found.append((node.name, place, ahead))
    if not found:
        return
    _, place, worst = min(found, key=lambda leak: leak[2].full_in_s)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    speed, full = f"{bytes_iec(worst.rate * 3600)}/h", duration(worst.full_in_s)
    nodes = {node for node, _, _ in found}
    only = next(iter(nodes)) if len(nodes) == 1 and len(context.metrics.nodes) > 1 else None
    yield finding(
        FindingKind.MEMORY_LEAK,
        "warning",
        f"{place}{more} leaks {speed}: full in {full}",
        short=f"{place} full in {full}",
        node=only,
        since_s=min(ahead.since for _, _, ahead in found),
    )


def _lowest_since(series: Series, start: float) -> float | None:
    """Return the lowest value since a time, None if the samples do not reach back to it."""
    first = bisect_right(series.times, start) - 1
    lowest = value_range(series.values[first:]) if first >= 0 else None
    return None if lowest is None else lowest[0]
