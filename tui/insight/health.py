"""What is wrong with a run, said in one line each; nothing for a healthy one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from api_client.models.status import JobStatus
from tui.insight.finding import Finding as Finding
from tui.insight.finding import FindingKind as FindingKind
from tui.insight.finding import Severity
from tui.insight.node_metrics import MetricsSnapshot, NodeSnapshot
from tui.insight.progress import NANOSECONDS, ProgressSnapshot
from tui.insight.series import Series, value_range
from tui.insight.stragglers import WINDOW_S, slow_nodes
from tui.insight.units import duration, number, percent

STALL_INTERVALS = 5
"""A run stalls after so many of its own usual step intervals without a step and without a log line …"""

STALL_AT_LEAST_S = 180.0
"""… but not before three minutes."""

IDLE_BELOW = 0.05
"""GPUs below that utilisation do nothing."""

IDLE_AFTER_S = 300.0
"""GPUs doing nothing for that long are idle."""

ACTIVE_FROM = 0.2
"""GPUs that once reached that utilisation had begun their work."""


_SEVERITY: dict[FindingKind, Severity] = {
    FindingKind.STALLED: "critical",
    FindingKind.LOSS_NOT_FINITE: "critical",
    FindingKind.GPU_IDLE: "warning",
    FindingKind.STRAGGLER: "warning",
}


def findings(
    job_status: str,
    progress: ProgressSnapshot | None,
    metrics: MetricsSnapshot | None,
    now: datetime,
) -> tuple[Finding, ...]:
    """What is wrong with a running job, the worst first; empty for a healthy or a finished one.

    ``now`` is aware and on the server's clock, as are the stamps of lines and samples: a clock that is
    minutes ahead would see stalls where there are none.
    """
    if job_status != JobStatus.RUNNING:
        return ()
    found: list[Finding] = []
    if progress is not None:
        found.extend(_stall(progress, now))
        found.extend(_broken_loss(progress))
    if metrics is not None:
        # Metrics may reach back an hour only: a run that has told a step worked, whatever they show.
        worked = progress is not None and progress.last_step_at_ns is not None
        idle = tuple(_idle(metrics, worked=worked))
        found.extend(idle)
        blamed = {finding.node for finding in idle}
        if None not in blamed:
            found.extend(_stragglers(metrics, frozenset(node for node in blamed if node is not None)))
    return tuple(sorted(found, key=lambda finding: finding.severity != "critical"))


def _finding(
    kind: FindingKind, text: str, *, node: str | None = None, since: datetime | None = None
) -> Finding:
    return Finding(kind, _SEVERITY[kind], text, node, since)


def _moment(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(epoch_s, UTC)


def _stall(progress: ProgressSnapshot, now: datetime) -> Iterator[Finding]:
    """No step and no line for far longer than usual, whatever the GPUs seem to do."""
    if progress.last_step_at_ns is None:
        return
    last_sign_ns = max(progress.last_step_at_ns, progress.last_line_at_ns or 0)
    silent_s = now.timestamp() - last_sign_ns / NANOSECONDS
    usual_s = progress.step_interval_s or 0.0
    if silent_s <= max(STALL_AT_LEAST_S, STALL_INTERVALS * usual_s):
        return
    usually = f", usually every {duration(max(1.0, usual_s))}" if usual_s else ""
    yield _finding(
        FindingKind.STALLED,
        f"no step and no log line for {duration(silent_s)}{usually}",
        since=_moment(last_sign_ns / NANOSECONDS),
    )


def _broken_loss(progress: ProgressSnapshot) -> Iterator[Finding]:
    """The newest loss is no number any more."""
    if progress.loss is None or math.isfinite(progress.loss):
        return
    times, values = progress.loss_series.times, progress.loss_series.values
    first = len(values)
    while first and not math.isfinite(values[first - 1]):
        first -= 1
    since = _moment(times[first]) if first < len(times) else None
    yield _finding(FindingKind.LOSS_NOT_FINITE, f"loss is {number(progress.loss)}", since=since)


def _idle(metrics: MetricsSnapshot, *, worked: bool) -> Iterator[Finding]:
    """GPUs that worked and now do nothing: one finding for the job when it is all of them."""
    if metrics.at is None:
        return
    idle = {
        node.name: since
        for node in metrics.nodes
        if (since := _idle_since(node.mean_utilization, metrics.at, worked=worked)) is not None
    }
    if not idle:
        return
    told = f"below {percent(IDLE_BELOW)}"
    if len(idle) == sum(_has_gpus(node) for node in metrics.nodes):
        since = max(idle.values())
        yield _finding(
            FindingKind.GPU_IDLE,
            f"GPUs idle ({told}) for {duration(metrics.at - since)}",
            since=_moment(since),
        )
        return
    for name, since in idle.items():
        yield _finding(
            FindingKind.GPU_IDLE,
            f"{name}: GPUs idle ({told}) for {duration(metrics.at - since)}",
            node=name,
            since=_moment(since),
        )


def _has_gpus(node: NodeSnapshot) -> bool:
    return len(node.mean_utilization) > 0


def _idle_since(utilization: Series, at: float, *, worked: bool) -> float | None:
    """Since when the GPUs have been doing nothing, if long enough and after having worked."""
    times, values = utilization.times, utilization.values
    first = len(values)
    while first and not values[first - 1] >= IDLE_BELOW:  # a gap does not end idleness
        first -= 1
    # Samples must reach to now: a node that fell silent may be anything but idle.
    if first == len(values) or at - times[-1] > IDLE_AFTER_S or at - times[first] < IDLE_AFTER_S:
        return None
    earlier = value_range(values[:first])
    if worked or (earlier is not None and earlier[1] >= ACTIVE_FROM):
        return times[first]
    return None


def _stragglers(metrics: MetricsSnapshot, excused: frozenset[str]) -> Iterator[Finding]:
    slow = slow_nodes(metrics) - excused
    for node in metrics.nodes:
        if node.name in slow:
            yield _finding(
                FindingKind.STRAGGLER,
                f"{node.name} lags behind the other nodes: GPUs at {percent(node.mean_utilization_now)}",
                node=node.name,
                since=_moment((metrics.at or 0.0) - WINDOW_S),
            )
