"""What a health check gets (``Context``), and how to determine when a current problem began.

The start is found by following the data back. ``now − window`` would not do: it moves as time passes, and
differs from one check to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

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
        told = seconds_left_range(self.progress, self.now)
        return None if told is None else told[1]

    def is_held(self, kind: FindingKind, node: str | None = None) -> bool:
        return HealthFinding(kind, "info", "", node).key in self.held

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
