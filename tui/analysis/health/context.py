"""The input of health checks (``Context``), and functions that find when a current problem began.

The start is found by following the data back. ``now − window`` would not do: it moves as time passes, and
differs from one check to the next.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import sub

from api_client.models import JobStatus
from api_client.models.logs import NS_PER_S
from tui.analysis.health.rules import HealthRules
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import FindingKind, HealthFinding, Severity
from tui.analysis.run.snapshot import RunSnapshot, seconds_left_range
from tui.analysis.series import Series


def start_of_condition(series: Series, holds: Callable[[float], bool], *, forgiven: int = 0) -> float | None:
    """Return the start of the newest run of values for which ``holds`` is True, None if there is none.

    Gaps do not end it, nor do up to ``forgiven`` other values in a row.
    """
    first: float | None = None
    missed = 0
    for place in range(len(series.values) - 1, -1, -1):
        value = series.values[place]
        if value != value:
            continue
        if holds(value):
            first = series.times[place]
            missed = 0
        else:
            missed += 1
            if missed > forgiven:
                break
    return first


def growth_started_at(series: Series, at: float, rate: float, level: float, window_s: float) -> float:
    """Return when growth of ``rate`` per second to ``level`` at ``at`` began, at least a window ago.

    The line through the window is extended backward as long as the values are near it (within half of the
    growth of a window); where they diverge, the start is where the line meets their previous level.
    """
    near = rate * window_s / 2
    since = at - window_s
    for place in range(len(series.values) - 1, -1, -1):
        time, value = series.times[place], series.values[place]
        if value != value or time > at - window_s:
            continue
        if abs(value - (level + rate * (time - at))) > near:
            return min(at - window_s, max(time, at - (level - value) / rate))
        since = time
    return since


_JUST_BEFORE_S = 60.0  # The timestamp of a listed checkpoint may precede its step's log line by this much.
_PAUSE_S = 90.0
_WARM_UP_S = 900.0  # Allocators and caches fill during the first steps.
_ROUND_REPORTS = 25  # Only so many reports apart is a round number of steps no coincidence.
_ROUND_STEPS = (50, 100, 250, 500, 1000, 2500, 5000, 10_000)


@dataclass(frozen=True, slots=True)
class Context:
    """A run at one point in time. ``held`` are the findings of the previous check, by key."""

    run: RunSnapshot
    rules: HealthRules
    held: Mapping[str, HealthFinding]

    @property
    def now(self) -> datetime:
        """The current time by the server's clock."""
        return self.run.server_now

    @property
    def now_s(self) -> float:
        return self.now.timestamp()

    @property
    def progress(self) -> ProgressSnapshot:
        return self.run.progress or ProgressSnapshot()

    @property
    def metrics(self) -> MetricsSnapshot:
        """The samples to check: always the same time range, whatever the charts show."""
        return self.run.health_metrics or self.run.metrics or MetricsSnapshot()

    @property
    def left_s(self) -> float | None:
        """Upper estimate of the seconds left; None if unknown."""
        remaining = seconds_left_range(self.progress, self.now)
        return None if remaining is None else remaining[1]

    @property
    def attempt_since(self) -> float:
        """Start of the current attempt (epoch s), by the platform or the log; -inf if it is the first."""
        times = [
            event.created.timestamp()
            for event in self.run.status_history
            if event.created is not None and event.status == JobStatus.RUNNING
        ]
        return max([*times, *self.progress.restarts], default=-math.inf)

    @property
    def training_since(self) -> float | None:
        """Time of the current attempt's first step (epoch s); None while it starts, or without steps.

        A bar at 0, or where a resumed run begins, is no step: it has to move.
        """
        since = self.attempt_since
        losses, marks = self.progress.loss_series, self.progress.step_series
        place = bisect_left(losses.times, since)
        found = [losses.times[place]] if place < len(losses.times) else []
        place = first = bisect_left(marks.times, since)
        while place < len(marks.times) and marks.values[place] == marks.values[first]:
            place += 1
        found += marks.times[place : place + 1]
        return min(found, default=None)

    @property
    def loads_again(self) -> bool:
        """True if something loads after the last step: the run starts again, although nothing says so.

        In reinforcement learning, weights are loaded in every step.
        """
        progress = self.progress
        return (
            not progress.moving_target
            and (progress.loading_at or 0.0) > (progress.last_step_at_ns or 0) / NS_PER_S
        )

    @property
    def growth_since(self) -> float | None:
        """Since when growing memory means something (epoch s): a while after the first step. None: not yet.

        If the log shows no steps, GPUs that work show that the run has started.
        """
        if self.training_since is not None:
            return self.training_since + _WARM_UP_S
        if self.progress.loss is not None or self.progress.step is not None:
            return None
        uses = [node.mean_utilization for node in self.metrics.nodes if node.mean_utilization.values]
        if not uses:
            return self.attempt_since
        begun = [
            time
            for use in uses
            for time, value in zip(use.times, use.values, strict=True)
            if value >= self.rules.active_from and time >= self.attempt_since
        ]
        if not begun:
            return None
        has_seen_start = min(begun) > min(use.times[0] for use in uses)
        return min(begun) + _WARM_UP_S if has_seen_start else self.attempt_since

    def has_paused_since(self, since: float) -> bool:
        """Return True if the run made no steps for a while since then: nodes do different work in a pause."""
        times, usual_s = self.progress.step_series.times, self.progress.step_interval_s
        if usual_s is None:
            return False
        recent = [*times[max(0, bisect_left(times, since) - 1) :], self.now_s]
        return max(map(sub, recent[1:], recent), default=0.0) > max(_PAUSE_S, 4 * usual_s)

    @property
    def pause_allowed_s(self) -> float:
        """Seconds that the run may pause between steps: by its own pauses, or for what may happen now.

        A first evaluation or save that the log announces, or that begins at a round step, has no earlier
        one to compare with.
        """
        progress, rules = self.progress, self.rules
        learned_s = rules.stall_pause_factor * (progress.line_pause_s or 0.0)
        if self._is_first_phase:
            return max(rules.stall_aside_s, learned_s)
        if not self._is_at_round_step and not self._is_at_end_of_epoch:
            return learned_s
        is_first = (progress.step_pause_s or 0.0) <= 2 * (progress.step_interval_s or 0.0)
        return max(rules.stall_aside_s / (1 if is_first else 2), learned_s)

    @property
    def _is_first_phase(self) -> bool:
        """True if the log announced a first evaluation or save, or a first checkpoint is listed."""
        run_phase, step_ns = self.progress.run_phase, self.progress.last_step_at_ns
        saved = [
            one.created_at.timestamp() for one in self.run.checkpoints or () if one.created_at is not None
        ]
        return (run_phase is not None and run_phase.first) or (
            step_ns is not None and bool(saved) and min(saved) >= step_ns / NS_PER_S - _JUST_BEFORE_S
        )

    @property
    def _is_at_round_step(self) -> bool:
        steps = self.progress.step_series.values
        if len(steps) < 2:
            return False
        apart = _ROUND_REPORTS * max(1.0, steps[-1] - steps[-2])
        return any(steps[-1] % unit == 0 and unit >= apart for unit in _ROUND_STEPS)

    @property
    def _is_at_end_of_epoch(self) -> bool:
        """True if the newest step ends an epoch of many reports, or the one after it begins the next."""
        epoch, reports = self.progress.epoch, len(self.progress.loss_series)
        if epoch is None or not round(epoch) or _ROUND_REPORTS * epoch > reports:
            return False
        return abs(epoch - round(epoch)) <= epoch / reports

    def is_held(self, kind: FindingKind, node: str | None = None) -> bool:
        return HealthFinding(kind, "info", "", node).key in self.held

    def held_nodes(self, kind: FindingKind) -> frozenset[str | None]:
        """Return the nodes with a held finding of that kind; None stands for the whole job."""
        return frozenset(found.node for found in self.held.values() if found.kind == kind)

    def with_hysteresis(self, threshold: float, healthy: float, *, held: bool) -> float:
        """Return the threshold; for a held finding, it is moved toward the healthy value (hysteresis)."""
        return threshold + (healthy - threshold) * self.rules.release if held else threshold

    def ends_before(self, seconds: float) -> bool:
        left = self.left_s
        return left is not None and left < seconds


def finding(
    kind: FindingKind,
    severity: Severity,
    text: str,
    *,
    short: str = "",
    node: str | None = None,
    since_s: float | None = None,
) -> HealthFinding:
    return HealthFinding(kind, severity, text, node, None if since_s is None else moment(since_s), short)


def moment(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(epoch_s, UTC)
