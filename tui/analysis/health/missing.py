"""Detect nodes that stopped sending data or never did, and metrics that stop while the job runs.

A node is missing if it sends neither metrics nor log lines. While it logs, only its metrics are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from api_client.models.logs import NS_PER_S
from tui.analysis.health.context import Context, finding
from tui.analysis.node_metrics import LEADER, NodeSnapshot
from tui.analysis.progress.snapshot import ReplicaLog
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.text.units import counted, duration

_STEPS = 4  # Samples or log lines that may be missed before a node counts as silent.
# Metrics last requested longer ago than this are old only because nothing polls them.
_ANSWERED_S = 90.0

LogState = Literal["logging", "progressing", "silent", "unknown"]
"""A node's state by the log: ``unknown`` if silence proves nothing, ``progressing`` if others log on."""
_TOGETHER_S = 600.0  # A node that dies stops logging and sending metrics at the same time.


def missing_nodes(context: Context, *, stalled: bool) -> Iterator[HealthFinding]:
    """Report nodes without samples while others have some, and metrics that stopped for the whole job.

    Unless a node's log fell silent with its metrics, it is missing only if the run has ``stalled``, too.
    If only one of several nodes was ever seen, the server reports just the leader, with or without its
    name; that is not a problem.
    """
    metrics, rules = context.metrics, context.rules
    at = metrics.at
    if at is None or not metrics.nodes:
        return
    yield from _stopped(context, at)
    if metrics.nodes[0].name == LEADER:
        return
    first_at = at
    wanted = context.run.job.node_count or 0
    silent: list[tuple[NodeSnapshot, float, float, float]] = []
    for node in metrics.nodes:
        span = _span(node)
        if span is None:
            continue
        first_at = min(first_at, span[0])
        silent_s = at - span[1]
        if silent_s > max(rules.missing_after_s, _STEPS * span[2]):
            silent.append((node, silent_s, span[1], span[2]))
    if wanted and len(metrics.nodes) - len(silent) >= wanted:
        return  # The expected number of nodes is active: the silent ones were replaced.
    log = _NodeActivity(context, at)
    for node, silent_s, last_at, span_s in silent:
        log_state = log.log_state(node.name, last_at)
        if log_state == "unknown" and context.progress.last_line_at_ns is not None and not stalled:
            log_state = "progressing"
        # While a run shows life, a short gap in its metrics is nobody's problem.
        if log_state in ("silent", "unknown") or silent_s > max(rules.metrics_after_s, _STEPS * span_s):
            yield _without_metrics(log, node.name, log_state, silent_s, last_at)
    absent = wanted - len(metrics.nodes)
    if absent > 0 and len(metrics.nodes) > 1 and at - first_at > rules.missing_start_s:
        yield from _never_measured(log, absent, wanted, first_at)


def _without_metrics(
    log: _NodeActivity, name: str, log_state: LogState, silent_s: float, last_at: float
) -> HealthFinding:
    no_metrics = f"{name}: no metrics for {duration(silent_s)}"
    if log_state == "silent":
        replica = log.replicas.get(name)
        quiet_s = silent_s if replica is None else log.at - replica.last_at_ns / NS_PER_S
        text = f"{name} is missing: no metrics for {duration(silent_s)}, no log line for {duration(quiet_s)}"
    elif log_state == "unknown":
        text = f"{name} has sent no metrics for {duration(silent_s)}, unlike the others"
    else:
        evidence = "; the run is still logging"
        if log_state == "logging":
            evidence = ", still logging" if log.names_nodes else f"; all {log.nodes} nodes are logging"
        return finding(
            FindingKind.METRICS_MISSING, "warning", no_metrics + evidence, node=name, since_s=last_at
        )
    short = f"{name} silent for {duration(silent_s)}"
    return finding(FindingKind.NODE_MISSING, "critical", text, short=short, node=name, since_s=last_at)


def _never_measured(log: _NodeActivity, absent: int, wanted: int, first_at: float) -> Iterator[HealthFinding]:
    """Report expected nodes that never sent metrics; those that log are running."""
    logging = log.nodes_without_metrics()[:absent]
    for name in logging:
        text = f"{name}: no metrics since it started, still logging"
        yield finding(FindingKind.METRICS_MISSING, "warning", text, node=name, since_s=first_at)
    absent -= len(logging)
    if not absent:
        return
    heard = wanted - absent
    if not log.names_nodes and log.count_logging() >= wanted:
        text = f"{heard} of {counted(wanted, 'node')} sent metrics, but all are logging"
        yield finding(FindingKind.METRICS_MISSING, "warning", text, since_s=first_at)
        return
    text = f"{counted(absent, 'node has', 'nodes have')} never sent metrics: {heard} of {wanted} reporting"
    short = f"{heard} of {counted(wanted, 'node')} reporting"
    yield finding(FindingKind.NODE_MISSING, "warning", text, short=short, since_s=first_at)


def _stopped(context: Context, at: float) -> Iterator[HealthFinding]:
    """Report metrics that ended for the whole job although the server was polled just now."""
    run = context.run
    asked_at = run.health_metrics_at if run.health_metrics is not None else run.metrics_at
    if asked_at is None or (run.at - asked_at).total_seconds() > _ANSWERED_S:
        return
    silent_s = context.now_s - at
    if silent_s <= max(context.rules.metrics_after_s, _STEPS * context.metrics.step_s):
        return
    line_ns = context.progress.last_line_at_ns
    logs = line_ns is not None and line_ns / NS_PER_S > at + context.rules.missing_after_s
    text = f"no metrics for {duration(silent_s)}{', still logging' if logs else ''}"
    yield finding(FindingKind.METRICS_MISSING, "warning", text, since_s=at)


class _NodeActivity:
    """Log activity per node, as of the newest data read: no node falls silent while nothing is read."""

    def __init__(self, context: Context, metrics_at: float) -> None:
        progress = context.progress
        self.nodes = max(context.run.job.node_count or 0, len(context.metrics.nodes))
        self.at = max(metrics_at, (progress.last_line_at_ns or 0) / NS_PER_S)
        self.replicas = {one.name: one for one in progress.replicas}
        self._measured = {node.name for node in context.metrics.nodes}
        self._after_s = context.rules.missing_after_s

    @property
    def names_nodes(self) -> bool:
        """True if log lines name nodes as the metrics do; replicas may have other names."""
        return not self._measured.isdisjoint(self.replicas)

    def log_state(self, name: str, metrics_until: float) -> LogState:
        """Return a node's state; ``metrics_until`` is the time of its last sample."""
        if not self.names_nodes:
            if self.count_logging() >= self.nodes:
                return "logging"
            fell_silent = any(self._fell_silent(one, metrics_until) for one in self.replicas.values())
            return "silent" if fell_silent else "unknown"
        replica = self.replicas.get(name)
        if replica is None:
            return "unknown"  # Maybe only the leader logs.
        if self._is_logging(replica):
            return "logging"
        # Some nodes log only while they start.
        return "silent" if self._fell_silent(replica, metrics_until) else "unknown"

    def _fell_silent(self, replica: ReplicaLog, metrics_until: float) -> bool:
        apart_s = abs(replica.last_at_ns / NS_PER_S - metrics_until)
        return not self._is_logging(replica) and apart_s <= max(_TOGETHER_S, _STEPS * replica.interval_s)

    def count_logging(self) -> int:
        return sum(map(self._is_logging, self.replicas.values()))

    def nodes_without_metrics(self) -> list[str]:
        if not self.names_nodes:
            return []
        return [
            name
            for name, one in self.replicas.items()
            if name not in self._measured and self._is_logging(one)
        ]

    def _is_logging(self, replica: ReplicaLog) -> bool:
        silent_s = self.at - replica.last_at_ns / NS_PER_S
        return silent_s <= max(self._after_s, _STEPS * replica.interval_s)


def _span(node: NodeSnapshot) -> tuple[float, float, float] | None:
    """Return the times of a node's first and last sample, and the interval between the last two."""
    series = [
        one
        for one in (node.mean_utilization, node.cpu, node.cpu_memory, node.mean_memory, node.disk_usage)
        if one.times
    ]
    if not series:
        return None
    last = max(series, key=lambda one: one.times[-1])
    usual = last.times[-1] - last.times[-2] if len(last) > 1 else 0.0
    return min(one.times[0] for one in series), last.times[-1], usual
