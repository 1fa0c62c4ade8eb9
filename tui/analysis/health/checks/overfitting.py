"""An evaluation loss that has risen for several evaluations while the training loss falls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.windows import values_between
from tui.analysis.series import Series
from tui.text.units import number

_LEVEL = 3  # The level of an evaluation loss is the median of so many.


@dataclass(frozen=True, slots=True)
class Limits:
    overfit_evaluations: int = limit(
        4, "Number of worse evaluations since the best one from which overfitting is remarked upon."
    )
    overfit_share: float = limit(0.05, "Minimum rise of the evaluation loss, as a share of its lowest level.")


def find(run: Watched, limits: Limits) -> Findings:
    series = run.progress.eval_loss_series
    pairs = zip(series.times, series.values, strict=True)
    points = [(time, value) for time, value in pairs if isfinite(value) and time >= run.attempt_since]
    times, values = [time for time, _ in points], [value for _, value in points]
    levels = [median(values[first : first + _LEVEL]) for first in range(len(values) - _LEVEL + 1)]
    if run.is_reinforcement or len(levels) <= limits.overfit_evaluations:
        return
    best = min(levels)
    position = levels.index(best)
    bends = [abs(a - 2 * b + c) for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    # Its median is this many deviations of the noise.
    noise = median(bends) / 1.65
    share = run.eased(limits.overfit_share, 0.0, held=run.is_held())
    newest = levels[-limits.overfit_evaluations :]
    has_risen = newest[-1] > best + max(share * abs(best), 3.0 * noise)
    still = newest[-1] >= max(newest) - noise and min(newest) > best + noise
    if not has_risen or not still or not _falls(run.progress.loss_series, times, position):
        return
    steps = run.progress.step_series
    at = bisect_right(steps.times, times[position + 1]) - 1
    where = f" at step {steps.values[at]:.0f}" if at >= 0 else ""
    figures = f"{number(newest[-1])}, was {number(best)}{where}"
    text = f"evaluation loss rises while the training loss falls: {figures}"
    yield run.finding("info", text, short=f"eval loss rises: {figures}", since_s=times[position + 1])


def _falls(losses: Series, evaluated: Sequence[float], best: int) -> bool:
    """Return True if the training loss is lower than it was around the best evaluation."""
    before = values_between(losses, evaluated[best], evaluated[best + _LEVEL - 1])
    newest = values_between(losses, evaluated[-_LEVEL])
    return bool(before and newest) and median(before) - median(newest) > (1 - 0.99) * abs(median(before))


CHECK = Check(
    FindingKind("overfitting", 160, "overfitting", lines="onset", figures=("loss", "evaluation loss")),
    "Overfitting",
    "info",
    Limits,
    find,
    needs="an evaluation loss that has risen by `overfit_share` and beyond its noise since its lowest level,"
    " in all of the newest evaluations of this attempt, while the training loss fell by a hundredth or"
    " more.",
    excused="a rise that is falling again, several evaluation sets whose losses take turns, and rewards.",
    ends="when the loss is back within three quarters of the share",
    costs="nothing that is sure: some runs are meant to go on",
    covered_by=frozenset({"loss-not-finite", "loss-exploding"}),
    examples=(
        Example(
            "an evaluation loss that rises",
            "eval loss rises: ",
            minutes=180,
            others=tuple(
                (600.0 * n, f"step {60 * n} eval_loss: {1 + 0.8**n + max(0, n - 7) * 0.03:.4f}")
                for n in range(1, 18)
            ),
        ),
        Example(
            "one that levels off",
            minutes=180,
            others=tuple((600.0 * n, f"step {60 * n} eval_loss: {1 + 0.8**n:.4f}") for n in range(1, 18)),
        ),
    ),
)
