"""Runs that compute without learning anything, and rewards that fall back to where they began."""

from __future__ import annotations

import math
from collections.abc import Callable

from tui.analysis.health.check import (
    HOUR_S,
    Check,
    Example,
    FindingKind,
    Findings,
    NoLimits,
    Watched,
)
from tui.analysis.health.watched import REWARD
from tui.analysis.health.windows import flipped, holds_since, noise_of, segment_medians, since_start
from tui.analysis.health.worse import NEWEST, Worse, grown_gradients, worsened
from tui.analysis.series import values_between
from tui.text.units import number


def not_learning(run: Watched, _limits: NoLimits) -> Findings:
    rates, norms = run.progress.learning_rate_series, run.progress.grad_norm_series
    rate_since_s, norm_since_s = (holds_since(curve, lambda value: value == 0) for curve in (rates, norms))
    finer = [rate for rate in values_between(rates, end=rate_since_s) if rate > 0]
    # A decaying rate that is printed with few digits reaches its smallest printable value before 0.
    is_sudden = bool(finer) and finer[-1] > 10 * min(finer)
    if _loss_stands_still(run, rate_since_s, 1 / 3 if is_sudden else 1.0):
        cause, since_s = "learning rate is 0", rate_since_s
    elif _loss_stands_still(
        run, norm_since_s, 1 / 3 if any(norms.values) else 1.0, even_with_rewards=_rewards_stand_still(run)
    ):
        cause, since_s = "gradient norm is 0", norm_since_s
    elif _loss_stands_still(run, -math.inf, 2.0) and _only_guesses(run):
        cause, since_s = "model only guesses", run.training_since or 0.0
    else:
        return
    text = f"the {cause}, and the loss has not moved from {number(run.progress.loss or 0.0)}"
    yield run.finding("warning", text, short=cause, since_s=max(since_s, run.attempt_since))


def _rewards_stand_still(run: Watched) -> bool:
    """Return True if each reward in the log has been the same in all of the newest lines."""
    rewards = [series.values[-50:] for name, series in run.progress.metrics.items() if REWARD.search(name)]
    return all(min(values) == max(values) for values in rewards)


def _only_guesses(run: Watched) -> bool:
    """Return True if the loss is nearly the same for all batches, and as high as without any training."""
    losses = values_between(run.of_attempt(run.progress.loss_series))
    levels = segment_medians(losses, 20)
    spread = max(noise_of(losses), max(levels) - min(levels))
    # A loss of 6 is a perplexity of 400: no trained language model has such a high one.
    return min(losses) > 6 and spread < 0.01 * min(losses)


def _loss_stands_still(
    run: Watched, since: float, patience: float, *, even_with_rewards: bool = False
) -> bool:
    """Return True if the loss is unchanged since ``since``: for ``patience`` × 30 minutes and 50 lines."""
    losses = since_start(run.progress.loss_series, max(since, run.attempt_since))
    values = values_between(losses)
    is_held = run.is_held()
    ends = run.left_s < HOUR_S / 2 and not is_held  # A schedule may end at 0.
    if len(values) < 50 * patience or run.now_s - losses.times[0] < patience * HOUR_S / 2 or ends:
        return False
    first, *_, last = segment_medians(values, 3)
    # A rate or norm that is printed with few digits may look like 0, but then the loss changes.
    share = run.eased(0.01, 0.1, held=is_held)
    is_still = abs(last - first) < share * abs(first) or max(values) == min(values)
    return is_still and (even_with_rewards or not run.is_reinforcement)


NOT_LEARNING = Check(
    FindingKind("not-learning", 37, "nothing learned", wastes_all=True, figures=("loss", "learning rate")),
    "Nothing learned",
    "warning",
    NoLimits,
    not_learning,
    needs="a learning rate or a gradient norm that is 0, and a loss that moves by less than a hundredth in"
    " half an hour and 50 lines, or in a third of both if the run printed other values before. Or a loss"
    " above 6 that moves as little in the first hour and 100 lines, and is nearly the same for all batches.",
    excused="the last half hour of a run, and reinforcement learning, whose losses stay near 0, unless its"
    " gradients are 0.",
    ends="when it or the loss changes",
    costs="everything so far: nothing is learned",
    covered_by=frozenset({"loss-not-finite"}),
    examples=(
        Example(
            "a schedule that never leaves 0",
            "learning rate is 0",
            line="step {step}/90000 loss={loss:.4f} lr=0.0",
            loss=lambda step: 10.82,
        ),
        Example(
            "a model that guesses among 50,000 tokens",
            "model only guesses",
            loss=lambda step: 10.82 + 0.03 * math.sin(step),
        ),
        Example(
            "a loss that is a sum, of a model that has been trained before",
            loss=lambda step: 48.0 + 4.0 * math.sin(step),
        ),
        Example(
            "a network that has died",
            "gradient norm is 0",
            minutes=112,
            stops_s=0,
            others=tuple(
                (10.0 * step, f"step {step}/90000 loss={loss} grad_norm={norm:.3f}")
                for steps, loss, norm in ((range(1, 600), 0.4, 0.8), (range(600, 672), 0.693, 0.0))
                for step in steps
            ),
        ),
        Example(
            "answers that never get a reward",
            "gradient norm is 0",
            line="step {step}/90000 loss=0.0 grad_norm=0.0 reward={loss:.3f}",
            loss=lambda _: 0.0,
        ),
        Example(
            "a second stage at the rate with which the first has ended",
            "learning rate is 0",
            minutes=180,
            stops_s=0,
            others=tuple(
                (
                    10.0 * step,
                    f"step {step}/90000 loss={max(1.2, 3 - step / 100):.4f} lr={1e-5 * (step < 400)}",
                )
                for step in range(1, 1080)
            ),
        ),
        Example(
            "a restart at a rate of 0, after finer ones",
            "learning rate is 0",
            minutes=112,
            stops_s=0,
            others=tuple(
                (10.0 * step, f"step {step}/90000 loss=2.27 lr={min(step, 100) * 1e-6 * (step < 600):.6f}")
                for step in range(1, 672)
            ),
        ),
        Example(
            "a rate that becomes too small for its digits",
            minutes=112,
            stops_s=0,
            others=tuple(
                (10.0 * step, f"step {step}/90000 loss=2.27 lr={1e-4 * (1 - step / 1200):.4f}")
                for step in range(1, 672)
            ),
        ),
        Example(
            "a rate that is printed with too few digits", line="step {step}/90000 loss={loss:.4f} lr=0.0"
        ),
        Example(
            "a loss that stays, at a tiny rate",
            line="step {step}/90000 loss={loss:.4f} lr=1e-7",
            loss=lambda step: 1.2,
        ),
    ),
)


def collapsed_reward(run: Watched, _limits: NoLimits) -> Findings:
    for name, rewards in run.progress.metrics.items():
        if not REWARD.search(name):
            continue
        series = run.of_attempt(rewards)
        worse = worsened(flipped(series.times, series.values), 0.5, held=run.is_held())
        # With harder tasks, a reward falls only part of the way back, and gradients stay as they were.
        if worse is None or not (worse.has_lost_all or run.is_held()):
            continue
        if cause := grown_gradients(run, worse.since) or _diverging_loss(run) or _no_longer_changes(worse):
            short = f"{name} fell to {number(-worse.now)}, was {number(-worse.best)}"
            yield run.finding("warning", f"{short}, while {cause}", short=short, since_s=worse.since)
            return


def _no_longer_changes(worse: Worse) -> str:
    """Return words if a reward has become constant, as if its reward server had failed; else empty."""
    newest = worse.after[-3 * NEWEST :]
    return "it no longer changes" if len(newest) == 3 * NEWEST and len(set(newest)) == 1 else ""


def _diverging_loss(run: Watched) -> str:
    """Return words if a loss diverges: the run's, or another one, such as a critic's; else empty."""
    if run.has("loss-exploding"):
        return "the loss diverges"
    losses = {name: series for name, series in run.progress.metrics.items() if "loss" in name.casefold()}
    diverging = (
        name for name, series in losses.items() if worsened(run.of_attempt(series), 8.0, held=run.is_held())
    )
    return next((f"{name} diverges" for name in diverging), "")


def _falling(
    rest: Callable[[int], str], to: Callable[[int], float] = lambda step: 0.03 + step % 3 / 1000
) -> tuple[tuple[float, str], ...]:
    """Return the lines of an example whose reward grows, falls at step 90, and stays there."""
    rewards = {step: 0.2 + step / 225 if step < 90 else to(step) for step in range(1, 120)}
    return tuple(
        (60.0 * step, f"step {step}/9000 reward={reward:.3f} {rest(step)}")
        for step, reward in rewards.items()
    )


COLLAPSED = Check(
    FindingKind(
        "reward-collapsed", 36, "reward fell{since}", lines="onset", figures=("metric", "gradient norm")
    ),
    "Collapsed reward",
    "warning",
    NoLimits,
    collapsed_reward,
    needs="a reward, score or return that had grown and is down to what the run began with: since its"
    " gradients tripled, or a loss diverged, or it stays at one value 15 times.",
    excused="a reward that is coming back, or falls while gradients and loss stay, as with harder tasks.",
    ends="when the reward or the gradients are back",
    costs="all that is computed from then on, unless the reward recovers",
    covered_by=frozenset({"loss-not-finite"}),
    examples=(
        Example(
            "a policy that collapses",
            "reward fell to 0.0310, was 0.564",
            stops_s=0,
            others=_falling(lambda step: f"grad_norm={0.4 if step < 90 else 9.0}"),
        ),
        Example(
            "a policy whose loss diverges",
            "reward fell to 0.0310, was 0.564",
            stops_s=0,
            others=_falling(lambda step: f"loss={0.012 + 0.2 * max(0, step - 89):.4f}"),
        ),
        Example(
            "a policy whose critic diverges",
            "reward fell to 0.0310, was 0.564",
            stops_s=0,
            others=_falling(lambda step: f"loss=0.01 value_loss={0.05 if step < 90 else 900:.2f}"),
        ),
        Example(
            "a reward whose server is gone",
            "reward fell to 0, was 0.564",
            stops_s=0,
            others=_falling(lambda _step: "grad_norm=0.4", to=lambda _step: 0.0),
        ),
        Example(
            "harder tasks",
            stops_s=0,
            others=_falling(lambda _step: "grad_norm=0.4", to=lambda step: 0.1 + step % 7 / 100),
        ),
    ),
)
