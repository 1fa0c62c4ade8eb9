"""Since when something has been so: what is found now is followed back to where it began.

Not ``now − window``: that would slide as time goes on, and differ from one look to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tui.analysis.health.rules import HealthRules
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import Finding, FindingKind, Severity
from tui.analysis.run.snapshot import RunSnapshot, seconds_left_range
from tui.analysis.series import Series


def began(series: Series, holds: Callable[[float], bool], *, forgiven: int = 0) -> float | None:
    """When the newest stretch of values began for all of which ``holds`` is true; None without one.

    Gaps do not end it, nor do up to ``forgiven`` values in a row that are otherwise.
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


def growth_began(series: Series, at: float, rate: float, level: float, window_s: float) -> float:
    """When a growth of ``rate`` a second to ``level`` at ``at`` began: at the latest a window ago.

    The line through the window is followed back as long as the values lie near it (half of what a window
    adds); where they leave it, the line met the level they had before.
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
    """One look at a run. ``held`` are the findings of the last look, by their keys."""

    run: RunSnapshot
    rules: HealthRules
    held: Mapping[str, Finding]

    @property
    def now(self) -> datetime:
        """Now by the server's clock."""
        return self.run.server_now

    @property
    def now_s(self) -> float:
        """The same in epoch seconds."""
        return self.now.timestamp()

    @property
    def progress(self) -> ProgressSnapshot:
        """What the log told."""
        return self.run.progress or ProgressSnapshot()

    @property
    def metrics(self) -> MetricsSnapshot:
        """The samples to judge by: always the same stretch of time, whatever the charts show."""
        return self.run.vitals or self.run.metrics or MetricsSnapshot()

    @property
    def left_s(self) -> float | None:
        """The most seconds that are likely left; None where nobody knows."""
        told = seconds_left_range(self.progress, self.now)
        return None if told is None else told[1]

    def is_held(self, kind: FindingKind, node: str | None = None) -> bool:
        """Whether the same was found the last time."""
        return Finding(kind, "info", "", node).key in self.held

    def eased(self, threshold: float, healthy: float, *, held: bool) -> float:
        """The threshold, moved towards the healthy value for a finding that is held."""
        return threshold + (healthy - threshold) * self.rules.release if held else threshold

    def ends_before(self, seconds: float) -> bool:
        """Whether the run will surely be over by then."""
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
) -> Finding:
    """A finding since an epoch second."""
    return Finding(kind, severity, text, node, None if since_s is None else moment(since_s), short)


def moment(epoch_s: float) -> datetime:
    """Epoch seconds as an aware UTC time."""
    return datetime.fromtimestamp(epoch_s, UTC)
