"""Nodes that stopped sending data, or never did, and nodes that run without metrics.

A node is missing if it sends neither metrics nor log lines. While it logs, only its metrics are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.node_metrics import LEADER, NodeSnapshot
from tui.analysis.progress.snapshot import ReplicaLog
from tui.text.units import counted, duration

STEPS = 4
"""Samples or log lines that may be missed before a node counts as silent."""


LogState = Literal["logging", "progressing", "silent", "unknown"]
"""A node's state by the log: ``unknown`` if silence proves nothing, ``progressing`` if others log on."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A node without samples since ``since`` (epoch s), for ``lasts_s``; usual is one each ``step_s``."""

    node: str
    lasts_s: float
    since: float
    step_s: float
    log_state: LogState


class Presence:
    """The nodes as of the newest data read: no node falls silent while nothing is read."""

    def __init__(self, run: Watched, missing_after_s: float) -> None:
        self.run = run
        self.at = run.metrics.at or 0.0
        self.expected = run.run.job.node_count or 0
        self.nodes = run.metrics.nodes
        self.replicas = {replica.name: replica for replica in run.progress.replicas}
        self.log_at = max(self.at, (run.progress.last_line_at_ns or 0) / NS_PER_S)
        self._after_s = missing_after_s
        self._spans = {node.name: span for node in self.nodes if (span := _span(node)) is not None}
        self.first_at = min((first for first, _, _ in self._spans.values()), default=self.at)

    @property
    def is_known(self) -> bool:
        """False if the server reports only the leader, with or without its name: that is no problem."""
        return bool(self.nodes) and self.nodes[0].name != LEADER

    @property
    def names_nodes(self) -> bool:
        """True if log lines name nodes as the metrics do; replicas may have other names."""
        return any(node.name in self.replicas for node in self.nodes)

    def silences(self) -> list[Silence]:
        """Return the nodes without samples while others have some; none if they were replaced."""
        silent = [
            Silence(name, self.at - last, last, step_s, self._log_state(name, last))
            for name, (_, last, step_s) in self._spans.items()
            if self.at - last > max(self._after_s, STEPS * step_s)
        ]
        is_complete = self.expected and len(self.nodes) - len(silent) >= self.expected
        return [] if is_complete or not self.is_known else silent

    def absent(self) -> int:
        """Return how many of several nodes never sent a sample, once they had five minutes to."""
        is_time = self.is_known and len(self.nodes) > 1 and self.at - self.first_at > 300.0
        return max(0, self.expected - len(self.nodes)) if is_time else 0

    def logging_only(self) -> list[str]:
        """Return the replicas that log, but send no metrics, if lines name nodes as the metrics do."""
        measured = {node.name for node in self.nodes}
        return [
            name
            for name, replica in self.replicas.items()
            if self.names_nodes and name not in measured and self.is_logging(replica)
        ]

    def count_logging(self) -> int:
        return sum(map(self.is_logging, self.replicas.values()))

    def is_logging(self, replica: ReplicaLog) -> bool:
        return self._quiet_s(replica) <= max(self._after_s, STEPS * replica.interval_s)

    def _quiet_s(self, replica: ReplicaLog) -> float:
        return self.log_at - replica.last_at_ns / NS_PER_S

    def _log_state(self, name: str, metrics_until: float) -> LogState:
        # Some nodes log only while they start, and maybe only the leader logs.
        replicas: Iterator[ReplicaLog] = iter(self.replicas.values())
        if self.names_nodes:
            replicas = (replica for replica in replicas if replica.name == name)
        own = list(replicas)
        is_counted = self.count_logging() >= max(self.expected, len(self.nodes))
        if (self.names_nodes and any(map(self.is_logging, own))) or (not self.names_nodes and is_counted):
            return "logging"
        if any(self._fell_silent(replica, metrics_until) for replica in own):
            return "silent"
        shows_life = self.run.progress.last_line_at_ns is not None and not self.run.has("stalled")
        return "progressing" if shows_life else "unknown"

    def _fell_silent(self, replica: ReplicaLog, metrics_until: float) -> bool:
        apart_s = abs(replica.last_at_ns / NS_PER_S - metrics_until)
        # A node that dies stops logging and sending metrics at the same time.
        return not self.is_logging(replica) and apart_s <= max(600.0, STEPS * replica.interval_s)


def _span(node: NodeSnapshot) -> tuple[float, float, float] | None:
    """Return the times of a node's first and last sample, and the interval between the last two."""
    series = (node.mean_utilization, node.cpu, node.cpu_memory, node.mean_memory, node.disk_usage)
    filled = [curve.times for curve in series if curve.times]
    if not filled:
        return None
    last = max(filled, key=lambda times: times[-1])
    return min(times[0] for times in filled), last[-1], last[-1] - last[-2] if len(last) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class NodeLimits:
    missing_after_s: float = limit(
        180.0,
        "Minimum time without samples, while other nodes send some, before a node is reported as missing.",
    )


def missing_nodes(run: Watched, limits: NodeLimits) -> Findings:
    nodes = Presence(run, limits.missing_after_s)
    for silence in nodes.silences():
        name, lasts = silence.node, duration(silence.lasts_s)
        if silence.log_state == "silent":
            replica = nodes.replicas.get(name)
            quiet_s = silence.lasts_s if replica is None else nodes.log_at - replica.last_at_ns / NS_PER_S
            text = f"{name} is missing: no metrics for {lasts}, no log line for {duration(quiet_s)}"
        elif silence.log_state == "unknown":
            text = f"{name} has sent no metrics for {lasts}, unlike the others"
        else:
            continue
        short = f"{name} silent for {lasts}"
        yield run.finding("critical", text, short=short, node=name, since_s=silence.since)
    absent = nodes.absent()
    absent -= min(absent, len(nodes.logging_only()))
    all_log = not nodes.names_nodes and nodes.count_logging() >= nodes.expected
    if absent and not all_log:
        seen, expected = nodes.expected - absent, nodes.expected
        never = counted(absent, "node has", "nodes have")
        text = f"{never} never sent metrics: {seen} of {expected} reporting"
        short = f"{seen} of {counted(expected, 'node')} reporting"
        yield run.finding("warning", text, short=short, since_s=nodes.first_at)


NODES = Check(
    FindingKind(
        "node-missing", 60, "{node} missing", "a node missing", "✗ lost", states_duration=True, lines="quiet"
    ),
    "Missing node",
    "critical; warning for nodes that never appeared",
    NodeLimits,
    missing_nodes,
    needs="a node that sends no more samples while others do, and whose log fell silent at the same time, or"
    " a run that has stalled as well.",
    excused="a node that still logs, silence of a node that never logs (often only rank 0 does) while the"
    " run makes progress, nodes that were replaced, and a server that reports only the leader.",
    costs="all nodes, which wait for it",
    examples=(
        Example(
            "a node that dies",
            "node-1 silent for",
            gpu=(0.95, lambda at: 0.95 if at < 5450 else None),
            stops_s=5450,
        ),
        Example("a short gap in the metrics", gpu=(0.95, lambda at: None if 5000 < at < 5200 else 0.95)),
    ),
)


@dataclass(frozen=True, slots=True)
class MetricsLimits:
    metrics_after_s: float = limit(
        600.0, "Maximum age of a job's newest metrics before they are reported as missing."
    )


def missing_metrics(run: Watched, limits: MetricsLimits) -> Findings:
    at = run.metrics.at
    if at is None or not run.metrics.nodes:
        return
    missing = run.rules.limits(NodeLimits)
    yield from _ended(run, at, limits.metrics_after_s, missing.missing_after_s)
    nodes = Presence(run, missing.missing_after_s)
    for silence in nodes.silences():
        # While a run shows life, a short gap in its metrics is nobody's problem.
        is_long = silence.lasts_s > max(limits.metrics_after_s, STEPS * silence.step_s)
        if not is_long or silence.log_state not in ("logging", "progressing"):
            continue
        evidence = "; the run is still logging"
        if silence.log_state == "logging":
            count = max(nodes.expected, len(nodes.nodes))
            evidence = ", still logging" if nodes.names_nodes else f"; all {count} nodes are logging"
        text = f"{silence.node}: no metrics for {duration(silence.lasts_s)}{evidence}"
        yield run.finding("warning", text, node=silence.node, since_s=silence.since)
    absent = nodes.absent()
    logging = nodes.logging_only()[:absent]
    for name in logging:
        text = f"{name}: no metrics since it started, still logging"
        yield run.finding("warning", text, node=name, since_s=nodes.first_at)
    absent -= len(logging)
    if absent and not nodes.names_nodes and nodes.count_logging() >= nodes.expected:
        seen = f"{nodes.expected - absent} of {counted(nodes.expected, 'node')}"
        yield run.finding("warning", f"{seen} sent metrics, but all are logging", since_s=nodes.first_at)


def _ended(run: Watched, at: float, after_s: float, missing_after_s: float) -> Findings:
    """Report metrics that ended for the whole job although the server was polled just now."""
    asked_at = run.run.health_metrics_at if run.run.health_metrics is not None else run.run.metrics_at
    # Metrics last requested longer ago than this are old only because nothing polls them.
    if asked_at is None or (run.run.at - asked_at).total_seconds() > 90.0:
        return
    silent_s = run.now_s - at
    if silent_s > max(after_s, STEPS * run.metrics.step_s):
        logs = (run.progress.last_line_at_ns or 0) / NS_PER_S > at + missing_after_s
        text = f"no metrics for {duration(silent_s)}{', still logging' if logs else ''}"
        yield run.finding("warning", text, since_s=at)


METRICS = Check(
    FindingKind(
        "metrics-missing",
        70,
        "{node}: no metrics",
        "job: no metrics",
        "? no metrics",
        states_duration=True,
        lines="quiet",
    ),
    "Missing metrics",
    "warning",
    MetricsLimits,
    missing_metrics,
    needs="a node without samples for `metrics_after_s` whose log lines, or those of the run, show that it"
    " is there; or no node that sends samples any more, although the server responds. Nothing else can be"
    " detected on such a node.",
    excused="a server that does not respond, and shorter gaps.",
    costs="nothing by itself: other findings may be missed",
    examples=(
        Example(
            "a node whose metrics end",
            "node-1: no metrics for",
            gpu=(0.95, lambda at: 0.95 if at < 5400 else None),
        ),
        Example("eight minutes without samples", gpu=(0.95, lambda at: None if 6500 < at < 6980 else 0.95)),
    ),
)
