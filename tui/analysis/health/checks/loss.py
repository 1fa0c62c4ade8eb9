"""A loss that is not finite, a loss that diverges, and overfitting."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from tui.analysis.health.check import (
    MINUTE_S,
    Check,
    Example,
    FindingKind,
    Findings,
    NoLimits,
    Severity,
    Watched,
    limit,
)
from tui.analysis.health.watched import REWARD
from tui.analysis.health.windows import holds_since, segment_medians
from tui.analysis.health.worse import NEWEST, Worse, grown_gradients, worsened
from tui.analysis.progress.snapshot import MAX_SKIPPED
from tui.analysis.series import latest, values_between
from tui.text.units import number

_ERROR_METRIC = re.compile(r"(?i)(?<![a-z])(?:r?mse|mae|error|[wc]er|ppl|perplexity)(?![a-z])")
"""Names of metrics, other than the loss, of which lower values are better."""


def not_finite(run: Watched, _limits: NoLimits) -> Findings:
    losses, norms = run.progress.loss_series, run.progress.grad_norm_series
    broken = _broken_at_end(losses.values)
    # A single NaN may be a batch that was skipped, unless no loss follows it.
    if broken and run.progress.loss is not None:
        since = losses.times[-broken]
        if run.is_held() or broken > 2 or run.now_s - since > 600.0 / broken:
            text = f"loss is {number_or_nan(run.progress.loss)}"
            yield run.finding("critical", text, since_s=since)
            return
    skipped, half_s = run.progress.skipped_steps, 300.0
    last_loss_s = losses.times[-1] if losses.times else run.now_s
    only_skips = len(skipped) == MAX_SKIPPED and last_loss_s < skipped[0]
    if only_skips and run.now_s - skipped[-1] < half_s < run.now_s - last_loss_s:
        text = "no loss any more: gradients overflow, and steps are skipped"
        yield run.finding("critical", text, since_s=last_loss_s)
        return
    broken = _broken_at_end(norms.values)
    # The first norms are infinite until the loss scaler has found its scale.
    if broken >= (3 if broken < len(norms) else 20):
        text = f"grad norm is {number_or_nan(norms.values[-1])}"
        yield run.finding("critical", text, since_s=norms.times[-broken])


def _broken_at_end(values: Sequence[float]) -> int:
    """Return the number of consecutive values at the end that are not finite."""
    return sum(1 for _ in takewhile(lambda value: not math.isfinite(value), reversed(values)))


def number_or_nan(value: float) -> str:
    """Format a number for display, also if it is ``NaN``, ``inf`` or ``-inf``."""
    return number(value) if math.isfinite(value) else "NaN" if math.isnan(value) else str(value)


NOT_FINITE = Check(
    FindingKind(
        "loss-not-finite",
        20,
        "loss is NaN{since}",
        loss="not finite",
        wastes_all=True,
        lines="onset",
        figures=("loss", "gradient norm"),
    ),
    "Non-finite loss",
    "critical",
    NoLimits,
    not_finite,
    needs="the last three losses to be NaN or infinite, or the last two for five minutes, or the last one"
    " for ten, or the last three gradient norms (some trainers then print a loss of 0); or ten steps that"
    " the log calls skipped because of an overflow, and no loss for five minutes.",
    excused="one or two such losses (a skipped batch), and infinite norms while the loss scale is still"
    " found.",
    ends="with a finite loss",
    costs="everything from then on: nothing that follows can be used",
    examples=(
        Example("NaN from step 500 on", "loss is NaN", loss=lambda step: math.nan if step > 500 else 2.0),
        Example("a NaN each 200 steps", loss=lambda step: math.nan if step % 200 == 7 else 2.0),
    ),
)


def metric_not_finite(run: Watched, _limits: NoLimits) -> Findings:
    for name, series in run.progress.metrics.items():
        broken = _broken_at_end(series.values)
        before = series.values[: len(series) - broken]
        # Some metrics are NaN from time to time, or while they do not apply.
        if broken >= 2 * NEWEST and len(before) >= 6 * NEWEST and all(map(math.isfinite, before)):
            text = f"{name} is {number_or_nan(series.values[-1])}, unlike the loss"
            short = f"{name} is {number_or_nan(series.values[-1])}"
            is_target = "loss" in name.lower() or REWARD.search(name)
            severity: Severity = "warning" if is_target else "info"
            yield run.finding(severity, text, short=short, since_s=series.times[-broken])
            return


METRIC_NOT_FINITE = Check(
    FindingKind("metric-not-finite", 35, "metric is NaN{since}", lines="onset", figures=("metric", "loss")),
    "Non-finite metric",
    "warning; info if it is no reward or loss",
    NoLimits,
    metric_not_finite,
    needs="ten values in a row of a reward or another metric of the log that are NaN or infinite, after 30"
    " or more, all of them finite.",
    excused="a metric that has been NaN before.",
    ends="with a finite value",
    costs="unknown: a reward that is NaN teaches nothing",
    covered_by=frozenset({"loss-not-finite"}),
    examples=(
        Example(
            "a reward that is NaN from step 500 on",
            "reward is NaN",
            line="step {step}/90000 loss=0.01 reward={loss:.3f}",
            loss=lambda step: math.nan if step > 500 else 0.4,
        ),
        Example(
            "a reward that is NaN each 200 steps",
            line="step {step}/90000 loss=0.01 reward={loss:.3f}",
            loss=lambda step: math.nan if step % 200 == 7 else 0.4,
        ),
    ),
)


_CRITICAL_FACTOR = (
    3.0  # Neither harder data nor a new learning rate raises a loss to this many times its level.
)


@dataclass(frozen=True, slots=True)
class DivergenceLimits:
    loss_factor: float = limit(
        1.5, "A loss is diverging from this many times its best level on, beyond its noise."
    )


def diverging(run: Watched, limits: DivergenceLimits) -> Findings:
    if run.now_s < run.growth_since:
        return  # first steps waste little; it may be a search for the learning rate
    is_held = run.is_held()
    factor = run.eased(limits.loss_factor, 1.0, held=is_held)
    worse = worsened(run.of_attempt(run.progress.loss_series), min(0.1, factor - 1), held=is_held)
    # The losses of GRPO and PPO begin at 0 and grow by design, hence a minimum rise of 0.1.
    if worse is None or worse.now < worse.best + 0.1 or _is_by_design(run, worse):
        return
    is_critical = worse.is_beyond(_CRITICAL_FACTOR - 1)
    if is_held or _is_divergence(run, worse, factor):
        yield run.finding(
            "critical" if is_critical else "warning", f"loss diverging: {worse.words}", since_s=worse.since
        )


def _is_divergence(run: Watched, worse: Worse, factor: float) -> bool:
    """Return True if harder data does not explain a rise: with such data, a loss jumps once, then falls."""
    if worse.is_beyond(_CRITICAL_FACTOR**2 - 1) and worse.best > 0:
        return True
    gradients = grown_gradients(run, worse.since)
    if _is_announced(run, worse.since) and not worse.is_beyond(_CRITICAL_FACTOR - 1):
        return bool(gradients) and worse.is_beyond(factor - 1)
    if worse.grows:
        return worse.is_beyond(factor - 1) or bool(gradients)
    # Within this many steps, a model would have learned a part of harder data.
    is_long = len(worse.after) >= 3 * NEWEST and run.steps_between(worse.since) >= 9 * NEWEST
    return is_long and worse.is_beyond(factor - 1 if gradients else 1.0)


def _is_announced(run: Watched, since: float) -> bool:
    """Return True if the log had new words right before, such as of another stage, but no skipped steps."""
    near_s = max(2 * MINUTE_S, 2 * (run.progress.step_interval_s or 0.0))
    return any(since - near_s <= at <= since for at in run.progress.new_words) and not any(
        abs(since - at) <= near_s for at in run.progress.skipped_steps
    )


def _is_by_design(run: Watched, worse: Worse) -> bool:
    """Return True if the rise may be by design.

    In reinforcement or adversarial learning, the target of a loss moves: there, only a rise far above all
    earlier losses is not by design.
    """
    # If the step count has started over, another training may have begun.
    before = values_between(run.progress.loss_series, run.count_since, worse.since)
    is_new = worse.since >= run.count_since and len(before) < 3 * NEWEST
    if is_new and not run.is_held():
        return True
    rates = run.progress.learning_rate_series
    zero_since = holds_since(rates, lambda rate: rate == 0)
    # At a learning rate of 0, no loss diverges. A rate that was always 0 may be printed with too few digits.
    if zero_since <= worse.since and max(values_between(rates)) > 0:
        return True
    if _has_another_scale(run, worse.since):
        return True
    usual = worse.values[: max(6 * NEWEST, len(worse.values) // 2)]
    low, top = min(usual), max(usual)
    return (run.is_reinforcement or median(usual) <= 0) and worse.now < top + _CRITICAL_FACTOR * (top - low)


def _has_another_scale(run: Watched, since: float) -> bool:
    """Return True if no error metric got worse, so that only the weights of the loss have changed."""
    errors = [series for name, series in run.progress.metrics.items() if _ERROR_METRIC.search(name)]
    times = [(values_between(series, end=since), values_between(series, since)) for series in errors]
    known = [(before[-3 * NEWEST :], after[-NEWEST:]) for before, after in times if len(after) >= NEWEST]
    return bool(known) and all(before and median(after) <= 1.05 * median(before) for before, after in known)


DIVERGING = Check(
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
    DivergenceLimits,
    diverging,
    needs="the median of the newest losses `loss_factor` times the best level of the run and beyond the"
    " noise of single losses (the more these differ, the more of them must show it), and a sign that it is"
    " no harder data: it grows from third to third since it rose; or it has been twice its best level, or"
    " gradients three times as large as usual, for 45 steps, and 15 losses that don't fall. A rise by a tenth"
    " is enough if it grows and gradients do, too; nine times the best level is a sign by itself.",
    excused="a loss that is coming back, or came back from a rise as high and as long, or falls between one"
    " jump and the next; a rise of less than 0.1, other errors (MAE, perplexity) that are no worse, a"
    " learning rate that has become 0, a count that begins again, a restart, and words new in the log"
    " as it rose. With rewards, an adversary, or losses below zero, only a loss far outside of all"
    " that the run has seen counts.",
    ends="when the loss is back near its best level",
    costs="all from then on, unless the loss recovers",
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
            "a loss that rises slowly, and on and on",
            "loss diverging: ",
            minutes=360,
            loss=lambda step: 2.2 + 4 * 0.98**step + 1.5 * max(0, step - 700) / 1440,
        ),
        Example(
            "a loss that jumps, and does not fall",
            "loss diverging: ",
            loss=lambda step: 2.8 + 8 * 0.98**step if step < 500 else 6.8,
        ),
        Example(
            "a loss that gets other weights, while the errors are as before",
            line="step {step}/90000 mae=0.9{step} loss={loss:.4f}",
            loss=lambda step: 2.8 + 8 * 0.98**step if step < 500 else 6.8,
        ),
        Example(
            "data that slowly become harder",
            minutes=240,
            loss=lambda step: 2.2 + 4 * 0.98**step + 0.9 * max(0, step - 700) / 740,
        ),
        Example(
            "a loss that rises with the gradients",
            "loss diverging: ",
            line="step {step}/90000 loss={loss:.4f} grad_norm={loss:.0f}e{loss:.0f}",
            loss=lambda step: 3.0 + max(0, step - 400) / 320,
        ),
        Example(
            "harder data that is being learned",
            loss=lambda step: 1.5 if step < 400 else 1.2 + 1.6 / (1 + (step - 400) / 100),
        ),
        Example(
            "gradients that stay large, of a loss that is well",
            minutes=66,
            line="step {step}/90000 loss=2.0 grad_norm={loss:.3f}",
            loss=lambda step: 40.0 if step > 330 else 0.6,
        ),
        Example(
            "layers that are pruned, again and again",
            minutes=240,
            loss=lambda step: (
                0.21
                + step // 90 / 90
                + (step > 89) * 0.8 * (1 + step % 90 / 5) ** -1.5
                + math.sin(step**2) / 200
            ),
        ),
        Example(
            "batches that are sorted by length in each epoch",
            minutes=240,
            loss=lambda step: 2 + 6 * 0.995**step + step % 300 / 200,
        ),
        Example(
            "a sweep, one of whose trainings diverges",
            stops_s=0,
            others=tuple(
                (1800.0 * trial + 20 * step, f"step {step}/80 loss={max(1, step - 5) if trial == 3 else 1.1}")
                for trial in range(4)
                for step in range(1, 81 if trial < 3 else 30)
            ),
        ),
        Example(
            "trainings of a sweep that count only epochs",
            stops_s=0,
            others=tuple(
                (
                    1500.0 * trial + 15 * n,
                    f"{{'loss': {0.69 if n < 40 else 0.05}, 'epoch': {n / 20:.2f}}}",
                )
                for trial in range(4)
                for n in range(1, 90)
            ),
        ),
        Example(
            "data that become harder at a learning rate of 0",
            stops_s=0,
            others=tuple(
                (10.0 * n, f"step {n}/9000 loss={0.8 + max(0, n - 500) / 150:.3f} lr={(n < 490) / 9}")
                for n in range(1, 720)
            ),
        ),
        Example(
            "other data that the log announces",
            minutes=180,
            others=((5995.0, "blend 2 of 3 begins: multilingual"),),
            loss=lambda step: 0.9 if step < 600 else 2.4,
        ),
        Example("a single spike", loss=lambda step: 40.0 if step in (500, 700) else 2.0),
        Example(
            "a search for the learning rate",
            minutes=12,
            step_s=2.0,
            loss=lambda step: 2.0 if step < 200 else min(40.0, 1.05 ** (step - 200) + 1),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class OverfittingLimits:
    overfit_evaluations: int = limit(
        4, "Number of worse evaluations since the best one from which overfitting is remarked upon."
    )
    overfit_share: float = limit(0.05, "Minimum rise of the evaluation loss, as a share of its lowest level.")


def overfitting_loss(run: Watched, limits: OverfittingLimits) -> Findings:
    is_held, evaluations = run.is_held(), run.of_attempt(run.progress.eval_loss_series)
    share = run.eased(limits.overfit_share, 0.0, held=is_held)
    worse = worsened(evaluations, share, newest=2, earlier=limits.overfit_evaluations, held=is_held)
    if worse is None or run.is_reinforcement:
        return
    since_best = worse.values[worse.values.index(min(worse.values)) + 1 :]
    if len(since_best) < limits.overfit_evaluations:
        return
    losses = run.progress.loss_series
    after = values_between(losses, worse.since)
    before = values_between(losses, end=worse.since)[-len(after) :]
    if before and after and median(before) - segment_medians(after, 2)[-1] > 0.01 * abs(median(before)):
        step = latest(run.progress.step_series, worse.since)
        where = f" at step {step:.0f}" if step is not None else ""
        text = f"evaluation loss rises while the training loss falls: {worse.words}{where}"
        # Some epochs after the best evaluation are common, but not if each evaluation is worse than the last.
        newest = since_best[-limits.overfit_evaluations :]
        is_sure = newest == sorted(newest) and worse.is_beyond(3 * share)
        severity = run.lasting("warning" if is_sure else "info")
        yield run.finding(severity, text, short=f"eval loss rises: {worse.words}", since_s=worse.since)


OVERFITTING = Check(
    FindingKind("overfitting", 160, "overfitting", lines="onset", figures=("loss", "evaluation loss")),
    "Overfitting",
    "info; warning from three times `overfit_share`, if each evaluation is worse",
    OverfittingLimits,
    overfitting_loss,
    needs="an evaluation loss that has been above its lowest level in all of the newest evaluations of this"
    " attempt, by `overfit_share` and beyond its noise, while the training loss fell by a hundredth or more.",
    excused="a rise that is falling again or came back before, several evaluation sets whose losses take"
    " turns, and rewards.",
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
            "one that rises with each of four epochs, after the second",
            "eval loss rises: ",
            others=tuple(
                (1150.0 * n, f"step {115 * n} eval_loss: {loss}")
                for n, loss in enumerate((1.09, 1.022, 1.05, 1.13, 1.25, 1.39), start=1)
            ),
        ),
        Example(
            "one that levels off",
            minutes=180,
            others=tuple((600.0 * n, f"step {60 * n} eval_loss: {1 + 0.8**n:.4f}") for n in range(1, 18)),
        ),
    ),
)
