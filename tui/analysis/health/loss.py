"""Detect a loss or gradient norm that is not finite or explodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from tui.analysis.health.context import Context, finding
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.series import Series
from tui.text.units import number

_BASELINE = 200  # Number of earlier losses that define the baseline.
_STAGES = 20  # Parts of the whole curve, to detect a divergence that takes hours.
_FALLEN = 2.5  # A divergence: the loss had fallen to less than its current level divided by this.
_NAN_NORMS = 3  # A single infinite norm is normal while the loss scale adjusts.
_DEVIATION = 1.4826  # Converts a median absolute deviation to a standard deviation.
_MIN_SPREAD = 0.02  # As a fraction of the level: even a very stable loss may fluctuate this much.
_MIN_RISE = 0.1
"""Smaller increases are not explosions: the losses of GRPO and PPO start at 0 and grow by design."""


def broken_loss(context: Context) -> Iterator[HealthFinding]:
    """Report a newest loss that is not finite, or such gradient norms, which some trainers log as loss 0."""
    told = context.progress
    if told.loss is not None and not math.isfinite(told.loss):
        since = _broken_since(told.loss_series)
        yield finding(
            FindingKind.LOSS_NOT_FINITE, "critical", f"loss is {number_or_nan(told.loss)}", since_s=since
        )
        return
    norms = told.grad_norm_series.values
    if len(norms) >= _NAN_NORMS and not any(math.isfinite(value) for value in norms[-_NAN_NORMS:]):
        since = _broken_since(told.grad_norm_series)
        text = f"grad norm is {number_or_nan(norms[-1])}"
        yield finding(FindingKind.LOSS_NOT_FINITE, "critical", text, since_s=since)


def exploding_loss(context: Context) -> Iterator[HealthFinding]:
    """Report losses that rose far above their usual level and stay there."""
    rules, told = context.rules, context.progress
    held = context.is_held(FindingKind.LOSS_EXPLODING)
    count = rules.loss_readings
    losses = _finite(told.loss_series.values)
    usual = _baseline(losses, count, rules.loss_history)
    if usual is not None:
        now = median(losses[-count:])
        level = median(usual)
        spread = max(_DEVIATION * median(abs(value - level) for value in usual), _MIN_SPREAD * abs(level))
        spreads = context.with_hysteresis(rules.loss_spreads, 0.0, held=held)
        factor = context.with_hysteresis(rules.loss_factor, 1.0, held=held)
        if now > level + max(spreads * spread, (factor - 1) * abs(level), _MIN_RISE):
            text = f"loss exploding: {number(now)}, was {number(level)}"
            since = _since(told.loss_series, level + spreads * spread)
            yield finding(FindingKind.LOSS_EXPLODING, "critical", text, since_s=since)
            return
    diverged = _diverged(told.loss_series.values, count)
    if diverged is not None:
        now, best = diverged
        text = f"loss diverging: {number(now)}, best was {number(best)}"
        since = _since(told.loss_series, (now + best) / 2)
        yield finding(FindingKind.LOSS_EXPLODING, "critical", text, since_s=since)
        return
    norms = _finite(told.grad_norm_series.values)
    usual = _baseline(norms, count, rules.loss_history)
    if usual is not None:
        now, level = median(norms[-count:]), median(usual)
        factor = context.with_hysteresis(rules.grad_norm_factor, 1.0, held=held)
        if level > 0 and now > factor * level:
            text = f"grad norm exploding: {number(now)}, was {number(level)}"
            since = _since(told.grad_norm_series, factor * level)
            yield finding(FindingKind.LOSS_EXPLODING, "warning", text, since_s=since)


def _diverged(values: Sequence[float], newest: int) -> tuple[float, float] | None:
    """Return the current and the best level of a loss that fell far and is back above its start."""
    size = len(values) // _STAGES
    if size < newest:
        return None
    stages = [
        part
        for start in range(0, _STAGES * size, size)
        if (part := [value for value in values[start : start + size] if math.isfinite(value)])
    ]
    now = [value for value in values[-newest:] if math.isfinite(value)]
    if not stages or not now:
        return None
    levels, level = [median(part) for part in stages], median(now)
    best = min(levels)
    noisy_up_to = median(
        max(part) for part in stages
    )  # Some trainers' single losses spike throughout the run.
    if best > 0 and level > max(levels[0], _FALLEN * best, best + _MIN_RISE, noisy_up_to):
        return level, best
    return None


def number_or_nan(value: float) -> str:
    """Format a number for display, also if it is ``NaN``, ``inf`` or ``-inf``."""
    return number(value) if math.isfinite(value) else "NaN" if math.isnan(value) else str(value)


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values[-2 * _BASELINE :] if math.isfinite(value)]


def _baseline(values: Sequence[float], newest: int, least: int) -> Sequence[float] | None:
    """Return the older half of the earlier values, so that a slow rise does not become the baseline."""
    before = values[:-newest]
    if len(before) < least:
        return None
    return before[: max(least, len(before) // 2)]


def _broken_since(series: Series) -> float | None:
    first = len(series.values)
    while first and not math.isfinite(series.values[first - 1]):
        first -= 1
    return series.times[first] if first < len(series.times) else None


def _since(series: Series, above: float) -> float | None:
    """Return since when most values have been above a level."""
    first = len(series.values)
    below = 0
    for place in range(len(series.values) - 1, -1, -1):
        if series.values[place] > above:
            first = place
            below = 0
        else:
            below += 1
            if below > 2:
                break
    return series.times[first] if first < len(series.times) else None
