"""A loss that got worse, and does not come back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tui.analysis.health.check import Check, Example, FindingKind, Findings, HealthFinding, Watched, limit
from tui.analysis.health.windows import holds_since, level_between, noise_of, since_start, values_between
from tui.analysis.series import Series
from tui.text.units import number

NEWEST = 5
"""Number of losses from which a rise shows."""
_HISTORY = 30  # Minimum number of earlier losses to compare with.
_SURE = 3.0  # Harder data or a new learning rate may raise a loss, but not to this many times its level.
_ERRORS = 6.0  # A level is known to so many standard errors.
_BEGUN = 0.2  # A rise begins where this share of it is done.
_RECOVERED = 0.1  # A loss is coming back once this share of its rise is gone.


@dataclass(frozen=True, slots=True)
class Limits:
    loss_factor: float = limit(
        1.5, "A loss is diverging from this many times its best level on, beyond its noise."
    )
    grad_norm_factor: float = limit(20.0, "A gradient norm is diverging at this many times its usual level.")


@dataclass(frozen=True, slots=True)
class Rise:
    """A loss above its best level: all losses, of which ``risen`` are those since it rose."""

    now: float
    best: float
    since: float
    losses: Sequence[float]
    risen: Sequence[float]

    @property
    def start(self) -> float:
        return median(self.losses[: 4 * NEWEST])

    @property
    def thirds(self) -> list[float]:
        return level_between(self.risen, 3)

    @property
    def comes_back(self) -> bool:
        highest = max(self.thirds)
        return self.thirds[-1] < highest - _RECOVERED * (highest - self.best)

    @property
    def grows(self) -> bool:
        first, *_, newest = self.thirds
        return len(self.thirds) == 3 and newest > first + _RECOVERED * (newest - self.best)


def find(run: Watched, limits: Limits) -> Findings:
    worse = worse_loss(run, limits)
    if worse is not None:
        yield worse
        return
    norms, is_held = _norms(run), run.is_held()
    if norms is None or norms[0] <= run.eased(limits.grad_norm_factor, 1.0, held=is_held) * norms[1]:
        return
    series = run.progress.grad_norm_series
    since = _above_since(series, norms[1] + _BEGUN * (norms[0] - norms[1])) or series.times[-1]
    if is_held or not Rise(*norms, since, (), values_between(series, since)).comes_back:
        text = f"grad norm diverging: {number(norms[0])}, was {number(norms[1])}"
        yield run.finding("warning", text, since_s=since)


def worse_loss(run: Watched, limits: Limits) -> HealthFinding | None:
    """Return the finding if the loss got worse and stays so."""
    is_held = run.is_held()
    factor = run.eased(limits.loss_factor, 1.0, held=is_held)
    rise = rise_of(since_start(run.progress.loss_series, run.attempt_since), factor)
    if rise is None or _is_by_design(run, rise):
        return None
    is_sure = rise.now > rise.best + (_SURE - 1) * abs(rise.best)
    if not is_held and not _is_divergence(rise, is_sure, _norms(run)):
        return None
    text = f"loss diverging: {number(rise.now)}, was {number(rise.best)}"
    return run.finding("critical" if is_sure else "warning", text, since_s=rise.since)


def _is_divergence(rise: Rise, sure: bool, norms: tuple[float, float] | None) -> bool:
    """Return True if a rise is more than harder data, which jumps once and is then learned."""
    if rise.comes_back or len(rise.risen) < NEWEST:
        return False
    if rise.now > _SURE**2 * rise.best > 0:
        return True
    has_large_norms = norms is not None and norms[0] > 3.0 * norms[1]
    # A rise within this part of the time before is no slow change of the data.
    is_fast = 5 * len(rise.risen) < len(rise.losses)
    if rise.grows:
        return sure or has_large_norms or rise.now > rise.start or is_fast
    # A rise that no longer grows may be harder data: it must last this many times as long.
    return (sure or has_large_norms) and len(rise.risen) >= 10 * NEWEST


def rise_of(series: Series, factor: float) -> Rise | None:
    """Return how far the newest losses are above the best level of the run; None if that is not clear."""
    losses = values_between(series)
    noise = _relative_noise(losses)
    count = max(NEWEST, math.ceil((_ERRORS * noise / math.log(2.5)) ** 2))
    if len(losses) < count + _HISTORY:
        return None
    now, before = median(losses[-count:]), losses[:-count]
    # Parts of the whole curve; the best of them is what the loss has reached.
    levels = level_between(before, max(1, min(20, len(before) // count)))
    best = min(levels)
    least = max(factor, math.exp(_ERRORS * noise / math.sqrt(count)))
    # Smaller ones are none: the losses of GRPO and PPO start at 0 and grow by design.
    if now <= best + max((least - 1) * abs(best), 0.1, _ERRORS * noise_of(before) / math.sqrt(count)):
        return None
    since = _above_since(series, best + _BEGUN * (now - best)) or series.times[-1]
    risen = values_between(series, since)
    return Rise(now, best, since, losses, risen)


def _relative_noise(losses: Sequence[float]) -> float:
    """Return the noise of single losses as a factor (its logarithm): those of diffusion differ by ten."""
    return noise_of([math.log(loss) for loss in losses if loss > 0])


def _is_by_design(run: Watched, rise: Rise) -> bool:
    """Return True if nothing tells this rise from what the run does by design.

    Rewards and adversaries move the target of a loss, and so does a learning rate that starts again:
    then only a loss far beyond all that the run has seen counts.
    """
    usual = rise.losses[: max(_HISTORY, len(rise.losses) // 2)]
    low, top = min(usual), max(usual)
    if run.is_reinforcement or median(usual) <= 0:
        return rise.now < top + _SURE * (top - low)
    rates = values_between(run.progress.learning_rate_series)
    # A learning rate this many times higher than before raises the loss by design.
    return bool(rates) and rates[-1] > 2.0 * median(rates) and rise.now < top


def _norms(run: Watched) -> tuple[float, float] | None:
    """Return the newest and the usual gradient norm."""
    norms = values_between(since_start(run.progress.grad_norm_series, run.attempt_since))
    if len(norms) < NEWEST + _HISTORY:
        return None
    usual = median(norms[: max(_HISTORY, len(norms) // 2)])
    return (median(norms[-NEWEST:]), usual) if usual > 0 else None


def _above_since(series: Series, level: float) -> float | None:
    """Return since when most values have been above a level."""
    return holds_since(series, lambda value: value > level, forgiven=2)


CHECK = Check(
    FindingKind(
        "loss-exploding",
        30,
        "loss diverging{since}",
        loss="diverged",
        wastes_all=True,
        lines="onset",
        figures=("loss", "gradient norm"),
    ),
    "Diverging loss",
    "critical if the loss is three times its best level, else warning",
    Limits,
    find,
    needs="the median of the newest losses `loss_factor` times the best level of the run and beyond the"
    " noise of single losses (the more these differ, the more of them must show it), and a sign that it is"
    " no harder data: it still grows, and does so fast, beyond the first losses, or to three times the best"
    " level; or gradients are three times as large as usual; or it has been three times the best level for"
    " long. Gradient norms that diverge on their own, and do not come back, are a warning.",
    excused="a loss that is coming back, a rise of less than 0.1, a learning rate that starts again, and a"
    " restart. With rewards, an adversary, or losses below zero, only a loss far outside of all that the"
    " run has seen counts.",
    ends="when the loss is back near its best level",
    costs="all that is computed from then on, unless the loss recovers",
    covered_by=frozenset({"loss-not-finite"}),
    examples=(
        Example(
            "a loss that climbs from step 500 on",
            "loss diverging: ",
            loss=lambda step: (
                2 + 4 / (1 + step / 100) if step < 500 else min(11.0, 2.5 * 1.03 ** (step - 500))
            ),
        ),
        Example(
            "harder data that is being learned",
            loss=lambda step: 1.5 if step < 400 else 1.2 + 1.6 / (1 + (step - 400) / 100),
        ),
        Example(
            "gradients that calm down again",
            minutes=61,
            line="step {step}/90000 loss=2.0 grad_norm={loss:.3f}",
            loss=lambda step: 0.6 + (40 * 0.96 ** (step - 330) if step > 330 else 0),
        ),
        Example(
            "gradients that stay large",
            "grad norm diverging",
            minutes=61,
            line="step {step}/90000 loss=2.0 grad_norm={loss:.3f}",
            loss=lambda step: 40.0 if step > 330 else 0.6,
        ),
        Example("a single spike", loss=lambda step: 40.0 if step in (500, 700) else 2.0),
    ),
)
