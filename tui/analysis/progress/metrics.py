"""List the curves of a run; find its headline metrics: reward, KL and response length."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from tui.analysis.progress.lines.vocabulary import words_of
from tui.analysis.series import Series
from tui.text.names import natural_key

if TYPE_CHECKING:
    from tui.analysis.progress.snapshot import ProgressSnapshot


class Curve(NamedTuple):
    """A curve with its name and the unit of its values."""

    name: str
    unit: str
    series: Series


def curves_of(progress: ProgressSnapshot) -> list[Curve]:
    """Return the curves of a run that have points: known quantities first, then metrics by name."""
    curves = [
        Curve("loss", "", progress.loss_series),
        Curve("eval_loss", "", progress.eval_loss_series),
        Curve("learning_rate", "", progress.learning_rate_series),
        Curve("grad_norm", "", progress.grad_norm_series),
        Curve("tokens_per_s", "tok/s", progress.tokens_per_s_series),
        Curve("samples_per_s", "samples/s", progress.samples_per_s_series),
        Curve("steps_per_s", "it/s", progress.rate_series),
        *(Curve(name, "", series) for name, series in progress.metrics.items()),
    ]
    return [curve for curve in curves if len(curve.series)]


_ANY = frozenset({"mean", "avg", "average", "train", "rollout", "objective"})
_HEADLINES = (
    (
        {"reward", "rewards", "rew", "return", "returns", "score", "scores"},
        _ANY | {"critic", "episode", "episodic", "ep", "env", "task", "rlhf"},
    ),
    ({"kl"}, _ANY | {"actor", "policy", "approx", "loss", "ppo"}),
    ({"length", "len"}, _ANY | {"response", "completion", "completions", "gen", "generation"}),
)
"""Words for reward, KL and length, each with the other words that the metric's name may contain."""


def headline_metrics(metrics: Collection[str]) -> list[str]:
    """Return the metric names of reward, KL and response length that exist; none without a reward.

    The standard deviation of a reward or a preference margin is not a reward: its name has other words.
    """
    tokens_by_name = {name: {word.rstrip("0123456789") for word in words_of(name)} - {""} for name in metrics}
    headlines: list[str] = []
    for quantities, others in _HEADLINES:
        names = [
            name
            for name, tokens in tokens_by_name.items()
            if tokens & quantities and tokens <= quantities | others
        ]
        if names:
            headlines.append(min(names, key=lambda name: ("rew" not in name.lower(), len(name), name)))
        elif not headlines:
            return []
    return headlines


def headline_series(progress: ProgressSnapshot) -> tuple[str, Series]:
    """Return the run's main quality metric and its name: the reward if there is one, else the loss."""
    headlines = headline_metrics(progress.metrics)
    return ("reward", progress.metrics[headlines[0]]) if headlines else ("loss", progress.loss_series)


def grouped(metrics: Collection[str]) -> list[str]:
    """Sort names by group (the part before the last slash); names without a group come first."""
    return sorted(metrics, key=lambda name: (name.rpartition("/")[0], natural_key(name)))
