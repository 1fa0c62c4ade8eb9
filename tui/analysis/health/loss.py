"""Detect a loss or gradient norm that is not finite or explodes."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from math import ceil, isfinite, log, sqrt
from statistics import median

from tui.analysis.health.context import Context, finding, start_of_condition
from tui.analysis.progress.fold import MAX_SKIPPED
from tui.analysis.run.finding import SEVERITIES, FindingKind, HealthFinding, Severity
from tui.analysis.series import Series
from tui.text.units import number

_BASELINE = 200  # Number of earlier losses that define the baseline.
_STAGES = 20  # Parts of the whole curve, to detect a divergence that takes hours.
_FALLEN = 2.5  # A divergence: the loss had fallen to less than its current level divided by this.
_SURE_DEVIATIONS = 6.0  # … of the median of the losses that show it.
_NAN_NORMS = 3  # A single infinite norm is normal while the loss scale adjusts.
_FIRST_NORMS = 20  # … and so are several before the first finite one.
_NAN_LOSSES = 3  # A single NaN may be a batch that was skipped.
_NAN_S = 600.0  # … unless nothing follows it, or another one after half of that.
_SKIPS_S = 300.0
_DEVIATION = 1.4826  # Converts a median absolute deviation to a standard deviation.
_MIN_SPREAD = 0.02  # As a fraction of the level: even a very stable loss may fluctuate this much.
_MIN_RISE = 0.1
"""Smaller increases are not explosions: the losses of GRPO and PPO start at 0 and grow by design."""
_SURE = 3.0  # Harder data or a new learning rate may raise a loss, but not to this many times its level.
_WAIT = 4  # A smaller rise must last for this many times `loss_readings`, and not be falling again.
_FALLING = 0.97
_ABOVE_START = 1.1
_WITH_NORM = 3.0  # Gradients this many times larger show that a small rise is no change of data.
_RISING_PARTS, _RISING_PART_S = 6, 600.0
_RISEN = 1.1
_RELEARNS = 2.0  # A learning rate this many times higher than before raises the loss by design.


def broken_loss(context: Context) -> Iterator[HealthFinding]:
    """Report a loss that is not finite for good, or such gradient norms; some trainers then log loss 0."""
    progress, series = context.progress, context.progress.loss_series
    broken = _broken_at_end(series.values)
    held = context.is_held(FindingKind.LOSS_NOT_FINITE)
    if broken and progress.loss is not None:
        since = series.times[-broken]
        if held or broken >= _NAN_LOSSES or context.now_s - since > _NAN_S / broken:
            text = f"loss is {number_or_nan(progress.loss)}"
            yield finding(FindingKind.LOSS_NOT_FINITE, "critical", text, since_s=since)
            return
    skipped = progress.skipped_steps
    if len(skipped) == MAX_SKIPPED and series.times and series.times[-1] < skipped[0]:
        is_new = context.now_s - skipped[-1] < _SKIPS_S
        if is_new and context.now_s - series.times[-1] > _SKIPS_S:
            text = "no loss any more: gradients overflow, and steps are skipped"
            yield finding(FindingKind.LOSS_NOT_FINITE, "critical", text, since_s=series.times[-1])
            return
    norms = progress.grad_norm_series.values
    broken = _broken_at_end(norms)
    if broken >= (_NAN_NORMS if broken < len(norms) else _FIRST_NORMS):
        text, since = f"grad norm is {number_or_nan(norms[-1])}", progress.grad_norm_series.times[-broken]
        yield finding(FindingKind.LOSS_NOT_FINITE, "critical", text, since_s=since)


def exploding_loss(context: Context) -> Iterator[HealthFinding]:
    """Report losses that rose far above their usual level and stay there, or far above their best."""
    series = _of_attempt(context, context.progress.loss_series)
    found = [one for one in (_above_usual(context, series), _above_best(context, series)) if one is not None]
    yield from sorted(found, key=lambda one: SEVERITIES.index(one.severity))[:1]


def _above_usual(context: Context, series: Series) -> HealthFinding | None:
    rules, held = context.rules, context.held.get(str(FindingKind.LOSS_EXPLODING))
    held = None if held is not None and held.severity == "info" else held
    count = rules.loss_readings
    losses = _finite(series.values)
    newest = losses[-count:]
    # Once found, the loss must come back to what it was before.
    before = losses[:-count]
    if held is not None and held.since is not None:
        before = _finite(series.values[: bisect_left(series.times, held.since.timestamp())])
    usual = _baseline(before, rules.loss_history) if held is None else _lowest(before, rules.loss_history)
    if usual is None or not newest:
        return None
    now, level = median(newest), median(usual)
    spread = max(_DEVIATION * _noise(usual, level), _MIN_SPREAD * abs(level))
    spreads = context.with_hysteresis(rules.loss_spreads, 0.0, held=held is not None)
    factor = context.with_hysteresis(rules.loss_factor, 1.0, held=held is not None)
    if now <= level + max(spreads * spread, (factor - 1) * abs(level), _MIN_RISE):
        return None
    since = _since(series, level + spreads * spread)
    sure = now > level + (_SURE - 1) * abs(level) and not _is_by_design(context, now, usual)
    if not sure and held is None and not _lasts(context, series, since, usual, now):
        return None
    text = f"loss diverging: {number(now)}, was {number(level)}"
    return finding(FindingKind.LOSS_EXPLODING, "critical" if sure else "warning", text, since_s=since)


def rising_loss(context: Context) -> Iterator[HealthFinding]:
    """Remark that the loss has risen for an hour, although nothing else shows that it diverges."""
    series = _of_attempt(context, context.progress.loss_series)
    edges = [
        bisect_left(series.times, context.now_s - n * _RISING_PART_S) for n in range(_RISING_PARTS, -1, -1)
    ]
    parts = [list(filter(isfinite, series.values[first:last])) for first, last in pairwise(edges)]
    earlier = [value for value in series.values[: edges[0]] if isfinite(value)]
    if min(map(len, parts)) < context.rules.loss_readings or len(earlier) < context.rules.loss_history:
        return
    levels = [median(part) for part in parts]
    best = median(_lowest(earlier, context.rules.loss_history) or earlier)
    held = context.is_held(FindingKind.LOSS_EXPLODING)
    least = context.with_hysteresis(_RISEN, 1.0, held=held) * best + (0.0 if held else _MIN_RISE)
    rises = levels == sorted(levels) or (held and levels[-1] > levels[0])
    if best > 0 and levels[-1] > least and rises and not _is_by_design(context, levels[-1], earlier):
        text = f"loss has risen slowly: {number(levels[-1])}, best was {number(best)}"
        since = _since(series, (levels[0] + best) / 2)
        yield finding(FindingKind.LOSS_EXPLODING, "info", text, since_s=since)


def _above_best(context: Context, series: Series) -> HealthFinding | None:
    count = context.rules.loss_readings
    with_norms = _norms_rise(_of_attempt(context, context.progress.grad_norm_series).values, count)
    diverged = _diverged(series.values, count, context.rules.loss_factor if with_norms else _FALLEN)
    if diverged is None or _is_by_design(context, diverged[0], _finite(series.values)[:-count]):
        return None
    now, best = diverged
    text = f"loss diverging: {number(now)}, best was {number(best)}"
    severity: Severity = "critical" if now > _FALLEN * best else "warning"
    return finding(FindingKind.LOSS_EXPLODING, severity, text, since_s=_since(series, (now + best) / 2))


def exploding_norm(context: Context) -> Iterator[HealthFinding]:
    """Report gradient norms far above their usual level."""
    rules, series = context.rules, _of_attempt(context, context.progress.grad_norm_series)
    times = _norm_rise(context, series)
    held = context.is_held(FindingKind.LOSS_EXPLODING)
    if times is not None and times[0] > (
        context.with_hysteresis(rules.grad_norm_factor, 1.0, held=held) * times[1]
    ):
        now, level = times
        text = f"grad norm diverging: {number(now)}, was {number(level)}"
        since = _since(series, (now + level) / 2)
        yield finding(FindingKind.LOSS_EXPLODING, "warning", text, since_s=since)


def _norm_rise(context: Context, series: Series) -> tuple[float, float] | None:
    """Return the newest and the usual gradient norm."""
    rules, norms = context.rules, _finite(series.values)
    usual = _baseline(norms[: -rules.loss_readings], rules.loss_history)
    if usual is None or median(usual) <= 0:
        return None
    return median(norms[-rules.loss_readings :]), median(usual)


def _of_attempt(context: Context, series: Series) -> Series:
    """Return what follows the last restart: a run that begins again begins with its first loss."""
    first = bisect_left(series.times, context.attempt_since)
    return series if first == 0 else Series(series.name, series.times[first:], series.values[first:])


def _is_by_design(context: Context, now: float, before: Sequence[float]) -> bool:
    """Return True if nothing tells this rise from what the run does by design.

    Rewards and adversaries move the target of a loss, and so does a learning rate that starts again:
    then only a loss far beyond all that the run has seen counts.
    """
    low, top = min(before, default=now), max(before, default=now)
    if context.progress.moving_target or median(before or [now]) <= 0:
        return now < top + _SURE * (top - low)
    rates = context.progress.learning_rate_series
    if not rates.values or len(before) < 2:
        return False
    usual = median(rates.values[-2 * _BASELINE :])
    return rates.values[-1] > _RELEARNS * usual and now < top


def _lasts(
    context: Context, series: Series, since: float | None, before: Sequence[float], now: float
) -> bool:
    """Return True if a moderate rise is a divergence: it stays, with other evidence than itself."""
    count = context.rules.loss_readings
    risen = list(filter(isfinite, series.values[bisect_left(series.times, since or 0.0) :]))
    if len(risen) < _WAIT * count or _is_by_design(context, now, before):
        return False
    first, earlier = median(risen[:count]), median(risen[-2 * count : -count])
    if now < _FALLING * max(first, earlier):
        return False
    norms = _norm_rise(context, context.progress.grad_norm_series)
    start = median(filter(isfinite, series.values[: 4 * count]))
    has_large_norms = norms is not None and norms[0] > _WITH_NORM * norms[1]
    return has_large_norms or now > _ABOVE_START * start or now > first / _FALLING**3


def _diverged(values: Sequence[float], newest: int, factor: float) -> tuple[float, float] | None:
    """Return the current and the best level of a loss that fell and is far above its best level again.

    Unless a smaller ``factor`` tells that gradients rise as well, it must be back above its start.
    """
    newest = max(newest, _enough(values))
    stages, now = _stages(values, newest), list(filter(isfinite, values[-newest:]))
    if not stages or not now:
        return None
    levels, level = [median(part) for part in stages], median(now)
    best = min(levels)
    if _has_come_back(levels, (best + level) / 2):
        return None
    # Some trainers' single losses spike throughout the run.
    noisy_up_to = median(max(part) for part in stages)
    rises = factor < _FALLEN and levels[-3:] == sorted(levels[-3:])
    least = max((factor if rises else _FALLEN) * best, best + _MIN_RISE, noisy_up_to)
    if best > 0 and level > least and (rises or level > levels[0] or level > _SURE * best):
        return level, best
    return None


def _enough(values: Sequence[float]) -> int:
    """Return of how many losses the median is no accident: single ones may differ by a factor of ten."""
    logs = [log(value) for value in values if isfinite(value) and value > 0]
    if len(logs) < 2:
        return 0
    noise = _DEVIATION * median(abs(later - earlier) for earlier, later in pairwise(logs)) / sqrt(2)
    return ceil((_SURE_DEVIATIONS * noise / log(_FALLEN)) ** 2)


def _has_come_back(levels: Sequence[float], height: float) -> bool:
    """Return True if the loss has risen above a height and fallen again before, as of two adversaries."""
    return sum(earlier > height >= later for earlier, later in pairwise(levels)) > 1


def _norms_rise(values: Sequence[float], newest: int) -> bool:
    """Return True if gradients are far larger than in most of the run."""
    stages, now = _stages(values, newest), list(filter(isfinite, values[-newest:]))
    return bool(stages and now) and median(now) > _WITH_NORM * median(median(part) for part in stages)


def _stages(values: Sequence[float], least: int) -> list[list[float]]:
    """Return the finite values of the whole curve in equal parts; none if these were too short."""
    size = len(values) // _STAGES
    starts = range(0, _STAGES * size, size) if size >= least else ()
    return list(filter(None, (list(filter(isfinite, values[start : start + size])) for start in starts)))


def number_or_nan(value: float) -> str:
    """Format a number for display, also if it is ``NaN``, ``inf`` or ``-inf``."""
    return number(value) if isfinite(value) else "NaN" if math.isnan(value) else str(value)


def _finite(values: Sequence[float]) -> list[float]:
    return list(filter(isfinite, values[-2 * _BASELINE :]))


def _baseline(before: Sequence[float], least: int) -> Sequence[float] | None:
    """Return the older half of the earlier values, so that a slow rise does not become the baseline."""
    if len(before) < least:
        return None
    return before[: max(least, len(before) // 2)]


def _noise(values: Sequence[float], level: float) -> float:
    """Return the usual distance from the level, or from the value before, as a falling loss is not noisy."""
    around = median(abs(value - level) for value in values)
    return min(around, median(abs(later - earlier) for earlier, later in pairwise(values)))


def _lowest(before: Sequence[float], size: int) -> Sequence[float] | None:
    """Return the values in a row with the lowest median: where a loss that has diverged came from."""
    parts = [before[start : start + size] for start in range(0, len(before) - size + 1, size)]
    return min(parts, key=median, default=None)


def _broken_at_end(values: Sequence[float]) -> int:
    """Return how many of the newest values are not finite."""
    return sum(1 for _ in takewhile(lambda value: not isfinite(value), reversed(values)))


def _since(series: Series, above: float) -> float | None:
    """Return since when most values have been above a level."""
    return start_of_condition(series, lambda value: value > above, forgiven=2)
