"""Nodes that send nothing any more or never did, and metrics that stop while the job goes on.

A node is missing when it sends neither metrics nor log lines. While it logs, only its metrics are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tui.analysis.health.context import Context, finding
from tui.analysis.node_metrics import LEADER, NodeSnapshot
from tui.analysis.progress.snapshot import NANOSECONDS, ReplicaLog
from tui.analysis.run.finding import Finding, FindingKind
from tui.text.units import duration

_STEPS = 4  # samples or log lines that may be late before their node counts as silent
_ANSWERED_S = 90.0  # metrics that were last read before that are old because nobody reads them

Voice = Literal["logging", "silent", "unknown"]
"""What the log says of a node; ``unknown`` where its silence proves nothing."""


def missing_nodes(context: Context) -> Iterator[Finding]:
    """Nodes without samples while others have some, and metrics that stopped for the whole job.

    Where a single node of several was ever heard, the server tells of the leader alone, under its name or
    without one (API facts, 2.2): that is no sickness.
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
    silent: list[tuple[NodeSnapshot, float, float]] = []
    for node in metrics.nodes:
        span = _span(node)
        if span is None:
            continue
        first_at = min(first_at, span[0])
        silent_s = at - span[1]
        if silent_s > max(rules.missing_after_s, _STEPS * span[2]):
            silent.append((node, silent_s, span[1]))
    if wanted and len(metrics.nodes) - len(silent) >= wanted:
        return  # as many as there should be are heard: the silent ones were replaced
    log = _Log(context, at)
    for node, silent_s, last_at in silent:
        yield _without_metrics(context, log, node.name, silent_s, last_at)
    absent = wanted - len(metrics.nodes)
    if absent > 0 and len(metrics.nodes) > 1 and at - first_at > rules.missing_start_s:
        yield from _never_measured(log, absent, wanted, first_at)


def _without_metrics(context: Context, log: _Log, name: str, silent_s: float, last_at: float) -> Finding:
    no_metrics = f"{name}: no metrics for {duration(silent_s)}"
    voice = log.voice(name)
    if voice == "silent":
        quiet_s = log.at - log.replicas[name].last_at_ns / NANOSECONDS
        text = f"{name} is missing: no metrics for {duration(silent_s)}, no log line for {duration(quiet_s)}"
    elif voice == "unknown" and not _makes_steps(context, last_at):
        text = f"{name} has sent no metrics for {duration(silent_s)}, the others have"
    else:
        evidence = "; the run still makes steps"
        if voice == "logging":
            evidence = ", still logging" if log.names_nodes else f"; all {log.nodes} nodes are logging"
        return finding(
            FindingKind.METRICS_MISSING, "warning", no_metrics + evidence, node=name, since_s=last_at
        )
    short = f"{name} silent for {duration(silent_s)}"
    return finding(FindingKind.NODE_MISSING, "critical", text, short=short, node=name, since_s=last_at)


def _never_measured(log: _Log, absent: int, wanted: int, first_at: float) -> Iterator[Finding]:
    """Nodes that the job should have and that never sent metrics: those that log are there."""
    logging = log.beside_metrics()[:absent]
    for name in logging:
        text = f"{name}: no metrics since it started, still logging"
        yield finding(FindingKind.METRICS_MISSING, "warning", text, node=name, since_s=first_at)
    absent -= len(logging)
    if not absent:
        return
    heard = wanted - absent
    if not log.names_nodes and log.count_logging() >= wanted:
        text = f"{heard} of {wanted} nodes have sent metrics, though all are logging"
        yield finding(FindingKind.METRICS_MISSING, "warning", text, since_s=first_at)
        return
    nodes = "one node has" if absent == 1 else f"{absent} nodes have"
    text = f"{nodes} never sent metrics: {heard} of {wanted} are heard"
    short = f"{heard} of {wanted} nodes heard"
    yield finding(FindingKind.NODE_MISSING, "warning", text, short=short, since_s=first_at)


def _stopped(context: Context, at: float) -> Iterator[Finding]:
    """Metrics that ended for the whole job, though the server was asked for them a moment ago."""
    run = context.run
    asked_at = run.vitals_at if run.vitals is not None else run.metrics_at
    if asked_at is None or (run.at - asked_at).total_seconds() > _ANSWERED_S:
        return
    silent_s = context.now_s - at
    if silent_s <= max(context.rules.metrics_after_s, _STEPS * context.metrics.step_s):
        return
    line_ns = context.progress.last_line_at_ns
    logs = line_ns is not None and line_ns / NANOSECONDS > at + context.rules.missing_after_s
    text = f"no metrics for {duration(silent_s)}{', still logging' if logs else ''}"
    yield finding(FindingKind.METRICS_MISSING, "warning", text, since_s=at)


def _makes_steps(context: Context, since_s: float) -> bool:
    """True if steps were made well after a node's metrics ended: all nodes take part in a step."""
    step_ns = context.progress.last_step_at_ns
    return step_ns is not None and step_ns / NANOSECONDS > since_s + context.rules.missing_after_s


class _Log:
    """What the log says of nodes, as of the newest thing read: while nothing is read nobody falls silent."""

    def __init__(self, context: Context, metrics_at: float) -> None:
        told = context.progress
        self.nodes = max(context.run.job.node_count or 0, len(context.metrics.nodes))
        self.at = max(metrics_at, (told.last_line_at_ns or 0) / NANOSECONDS)
        self.replicas = {one.name: one for one in told.replicas}
        self._measured = {node.name for node in context.metrics.nodes}
        self._after_s = context.rules.missing_after_s

    @property
    def names_nodes(self) -> bool:
        """True if lines name nodes as metrics do; replicas may have names of their own."""
        return not self._measured.isdisjoint(self.replicas)

    def voice(self, name: str) -> Voice:
        """Return what the log says of the node of that name."""
        if not self.names_nodes:
            return "logging" if self.count_logging() >= self.nodes else "unknown"
        replica = self.replicas.get(name)
        if replica is None:
            return "unknown"  # perhaps only the leader logs
        return "logging" if self._is_logging(replica) else "silent"

    def count_logging(self) -> int:
        """Return how many replicas are logging."""
        return sum(map(self._is_logging, self.replicas.values()))

    def beside_metrics(self) -> list[str]:
        """Return the nodes that are logging and have no metrics."""
        if not self.names_nodes:
            return []
        return [
            name
            for name, one in self.replicas.items()
            if name not in self._measured and self._is_logging(one)
        ]

    def _is_logging(self, replica: ReplicaLog) -> bool:
        silent_s = self.at - replica.last_at_ns / NANOSECONDS
        return silent_s <= max(self._after_s, _STEPS * replica.interval_s)


def _span(node: NodeSnapshot) -> tuple[float, float, float] | None:
    """First and last sample of a node, and the distance of its last two."""
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
