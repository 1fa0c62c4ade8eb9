"""The immutable progress of a run, with bounded series and the trend of the loss."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from api_client.models.logs import NS_PER_S
from tui.analysis.logs.error_tally import ErrorTally
from tui.analysis.series import EMPTY, Series

MAX_SKIPPED = 10
"""Maximum skipped steps in a snapshot; the newest are kept."""

RunPhaseKind = Literal["evaluation", "checkpoint", "other"]

Trend = Literal["↓", "↑", "→", ""]


@dataclass(frozen=True, slots=True)
class StreamView:
    """A source of progress: a replica, or one of its ranks if lines name ranks.

    ``key`` selects it (``ProgressFold.choose``); ``readings`` is the number of lines with progress.
    ``step_times_s`` are the mean of the newest printed step times, and that of as many before.
    """

    key: str
    replica: str | None
    rank: int | None
    readings: int
    step: int | None = None
    step_times_s: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """The lines of one replica (a node, as the log names it): first and last time (epoch ns), and count."""

    name: str
    first_at_ns: int
    last_at_ns: int
    count: int = field(compare=False)

    @property
    def interval_s(self) -> float:
        """Mean seconds between two lines; 0 for a single one."""
        return (self.last_at_ns - self.first_at_ns) / NS_PER_S / max(1, self.count - 1)


@dataclass(frozen=True, slots=True)
class RunPhase:
    """The newest activity besides training since the last step, with the times (epoch s) of its lines.

    ``first`` is True if no earlier activity of this kind has interrupted the run's steps.
    """

    kind: RunPhaseKind
    since: float
    newest: float
    first: bool


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """The progress of a training run. ``None`` means that the log does not report it.

    Rates are steps per second, times of events epoch nanoseconds. ``eta_s`` counts from
    ``last_step_at_ns`` and lies between ``eta_low_s`` and ``eta_high_s``, whose distance depends on how
    steady the run's speed has been. ``step_interval_s``
    is the usual interval between reports of a new step; ``step_pause_s`` and ``line_pause_s`` are the
    longest times without a step or a line that the run has recovered from (evaluations, saves). ``run_phase``
    is the activity since the last step if the log announces one (an evaluation, a save). ``replica`` is
    the source of the lines, ``stream`` its key in ``streams``.

    Series are over time; ``over_steps`` converts one to steps using ``step_series``. ``restarts`` are
    times (epoch s) when the run restarted; ``saves`` are the newest checkpoints in the log (name, ns),
    oldest first. ``replicas`` are those that lines name. ``moving_target`` is True if lines with a loss also
    name rewards or an adversary, so that a rising loss means little. ``save_every``
    are the steps between saves, by the settings. ``loading_at`` is the time (epoch s) at which the log last
    announced that something loads, ``moved_at`` that at which a count of other work last moved.
    ``skipped_steps`` are the newest times at which a step was skipped because its gradients overflowed.
    """

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: float | None = None
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    tokens_per_s: float | None = None
    samples_per_s: float | None = None
    rate_steps_per_s: float | None = None
    rate_overall: float | None = None
    eta_s: float | None = None
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    step_interval_s: float | None = None
    step_pause_s: float | None = None
    line_pause_s: float | None = None
    last_step_at_ns: int | None = None
    run_phase: RunPhase | None = None
    first_line_at_ns: int | None = None
    last_line_at_ns: int | None = None
    gaps: tuple[tuple[float, float], ...] = ()
    """Start and end (epoch s) of each part of the log that could not be read."""
    loss_series: Series = EMPTY
    loss_by_step: tuple[tuple[int, float], ...] = ()
    has_relative_steps: bool = False
    """True if steps are counted on from earlier lines, so that they are wrong while these are unread."""
    count_starts: tuple[float, ...] = (0.0,)
    """Steps at which the printed count restarts, such as at each epoch or each run of a sweep."""
    epoch_series: Series = EMPTY
    eval_loss_series: Series = EMPTY
    learning_rate_series: Series = EMPTY
    grad_norm_series: Series = EMPTY
    tokens_per_s_series: Series = EMPTY
    samples_per_s_series: Series = EMPTY
    rate_series: Series = EMPTY
    step_series: Series = EMPTY
    restarts: tuple[float, ...] = ()
    announced_restarts: tuple[float, ...] = ()
    """Times (epoch s) of lines that announce a restart; other restarts show only in the steps."""
    resizes: tuple[float, ...] = ()
    """Times (epoch s) of lines that report nodes joining, leaving, or being replaced as planned."""
    saves: tuple[tuple[str, int], ...] = ()
    errors: ErrorTally = field(default_factory=ErrorTally)
    replicas: tuple[ReplicaLog, ...] = ()
    streams: tuple[StreamView, ...] = ()
    stream: str | None = None
    replica: str | None = None
    moving_target: bool = False
    save_every: int | None = None
    loading_at: float | None = None
    moved_at: float | None = None
    advanced_at: float | None = None
    """Time (epoch s) at which a count of other work last reached a new maximum."""
    new_words: tuple[float, ...] = ()
    """Times (epoch s) of lines with a text that is new in the log, except progress and warnings."""
    skipped_steps: tuple[float, ...] = ()
    input_length_series: Series = EMPTY
    metrics: Mapping[str, Series] = field(default_factory=dict, hash=False)
    """The curves of other named values, by name as printed."""
    refused_metrics: int = 0
    """Number of metric names that have no curve because of the limit."""

    @property
    def last_checkpoint(self) -> tuple[str, float] | None:
        """The newest save in the log and its time (epoch s)."""
        return (self.saves[-1][0], self.saves[-1][1] / NS_PER_S) if self.saves else None

    @property
    def fraction(self) -> float | None:
        if self.step is None or not self.total_steps:
            return None
        return min(1.0, self.step / self.total_steps)

    @property
    def is_done(self) -> bool:
        """True once the last step is done."""
        return self.step is not None and self.total_steps is not None and self.step >= self.total_steps

    @property
    def has_ranking_loss(self) -> bool:
        """True if a lower loss means a better model; False for a moving target or a loss below zero."""
        return not self.moving_target and not any(value < 0 for value in self.loss_series.values)

    @property
    def throughput_series(self) -> tuple[Series, str]:
        """The best measure of speed in the log, and its unit: tokens, samples or steps per second."""
        if len(self.tokens_per_s_series):
            return self.tokens_per_s_series, "tok/s"
        if len(self.samples_per_s_series):
            return self.samples_per_s_series, "samples/s"
        return self.rate_series, "it/s"


def loss_trend(snapshot: ProgressSnapshot) -> Trend:
    """Return ``↓``, ``↑`` or ``→`` (within noise) for the trend of the loss; empty while unknown.

    The newest losses are compared with as many before. Those that are not finite are left out. The noise is
    estimated from differences between neighbors, since a spread around the mean would count a steep trend as
    noise.
    """
    values = snapshot.loss_series.values
    size = max(3, min(200, len(values) // 4))  # the newest quarter and the one before
    finite = [value for value in values[-2 * size :] if math.isfinite(value)]
    half = len(finite) // 2
    if half < 2:
        return ""
    # Use plain sums and products: they overflow to infinity, where fsum and ** would raise.
    change = sum(finite[-half:]) / half - sum(finite[-2 * half : -half]) / half
    moves = [later - earlier for earlier, later in pairwise(finite)]
    error = math.sqrt(sum(move * move for move in moves) / len(moves) / half)
    if not abs(change) > 3 * error:
        return "→"
    return "↓" if change < 0 else "↑"


def over_steps(series: Series, snapshot: ProgressSnapshot, *, whole: bool = True) -> Series:
    """Convert a series of the snapshot to steps: its ``times`` are steps, ascending.

    A value gets the newest step reported up to its time. If a run restarted from an earlier step, its
    lost progress beyond that step is left out. Without steps, values are numbered. Values before the first
    step are at step 0, or left out if the beginning of the log may not have been read (not ``whole``).
    """
    marks = snapshot.step_series
    if not marks.times:
        return Series(series.name, tuple(float(n + 1) for n in range(len(series))), series.values)
    steps: list[float] = []
    values: list[float] = []
    for time, value in zip(series.times, series.values, strict=True):
        position = bisect_right(marks.times, time) - 1
        if position < 0 and not whole:
            continue
        step = marks.values[position] if position >= 0 else 0.0
        cut = bisect_left(steps, step) if steps and step < steps[-1] else len(steps)
        del steps[cut:], values[cut:]
        steps.append(step)
        values.append(value)
    return Series(series.name, tuple(steps), tuple(values))
