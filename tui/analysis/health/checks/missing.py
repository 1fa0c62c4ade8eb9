"""Nodes that stopped sending data, or never did, and nodes that run without metrics.

A node is missing if it sends neither metrics nor log lines. While it logs, only its metrics are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.node_metrics import LEADER, NodeSnapshot
from tui.analysis.progress.snapshot import ReplicaLog
from tui.text.units import counted, duration

STEPS = 4
"""Samples or log lines that may be missed before a node counts as silent."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A node without samples since ``since`` (epoch s), for ``lasts_s``; usual is one each ``step_s``.

    ``is_logging`` if it writes to the log, ``died`` if it fell silent there, too.
    """

    node: str
    lasts_s: float
    since: float
    step_s: float
    is_logging: bool
    died: bool


class Presence:
    """The nodes as of the newest data read: no node falls silent while nothing is read."""

    def __init__(self, run: Watched, missing_after_s: float) -> None:
        self.at = run.metrics.at or 0.0
        self.expected = run.run.job.node_count or 0
        # A server may report only the leader: that is no problem.
        self.nodes = [node for node in run.metrics.nodes if node.name != LEADER]
        self.replicas = {replica.name: replica for replica in run.progress.replicas}
        self.log_at = max(self.at, (run.progress.last_line_at_ns or 0) / NS_PER_S)
        self._after_s = missing_after_s
        self._spans = {node.name: span for node in self.nodes if (span := _span(node)) is not None}
        self.first_at = min((first for first, _, _ in self._spans.values()), default=self.at)
        # Replicas may have other names in the log than nodes in the metrics.
        self.names_nodes = any(node.name in self.replicas for node in self.nodes)
        logging = [name for name, replica in self.replicas.items() if self._is_logging(replica)]
        self.all_log = not self.names_nodes and len(logging) >= max(self.expected, len(self.nodes)) > 0
        self.logging = frozenset(logging)

    def silences(self) -> list[Silence]:
        """Return the nodes without samples while others have some; none if they were replaced."""
        silent = []
        for name, (_, last, step_s) in self._spans.items():
            if self.at - last > max(self._after_s, STEPS * step_s):
                logs = self.all_log or name in self.logging
                silent.append(Silence(name, self.at - last, last, step_s, logs, self._died(name, last)))
        return [] if self.expected and len(self.nodes) - len(silent) >= self.expected else silent

    def absent(self) -> tuple[int, list[str]]:
        """Return how many nodes never sent a sample and are silent, and those that only log."""
        if len(self.nodes) < 2 or self.at - self.first_at <= 300.0:
            return 0, []
        count = max(0, self.expected - len(self.nodes))
        measured = {node.name for node in self.nodes}
        logging = [name for name in self.replicas if self.names_nodes and name in self.logging - measured]
        return 0 if self.all_log else max(0, count - len(logging)), logging[:count]

    def quiet_s(self, replica: ReplicaLog) -> float:
        return self.log_at - replica.last_at_ns / NS_PER_S

    def _is_logging(self, replica: ReplicaLog) -> bool:
        return self.quiet_s(replica) <= max(self._after_s, STEPS * replica.interval_s)

    def _died(self, name: str, metrics_until: float) -> bool:
        """Return True if a node, or any if the log names none, stopped logging at the same time."""
        own = [replica for replica in self.replicas.values() if replica.name == name or not self.names_nodes]
        return any(
            replica.name not in self.logging
            and abs(replica.last_at_ns / NS_PER_S - metrics_until) <= max(600.0, STEPS * replica.interval_s)
            for replica in own
        )


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
        if silence.is_logging or (not silence.died and run.makes_progress):
            continue
        text = f"{name} has sent no metrics for {lasts}, unlike the others"
        if silence.died:
            replica = nodes.replicas.get(name)
            quiet_s = silence.lasts_s if replica is None else nodes.quiet_s(replica)
            text = f"{name} is missing: no metrics for {lasts}, no log line for {duration(quiet_s)}"
        short = f"{name} silent for {lasts}"
        yield run.finding("critical", text, short=short, node=name, since_s=silence.since)
    absent, _ = nodes.absent()
    if absent:
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
    at, after_s = run.metrics.at, limits.metrics_after_s
    if at is None or not run.metrics.nodes:
        return
    asked_at = run.run.health_metrics_at if run.run.health_metrics is not None else run.run.metrics_at
    silent_s = run.now_s - at
    # Metrics last requested longer ago than this are old only because nothing polls them.
    is_polled = asked_at is not None and (run.run.at - asked_at).total_seconds() <= 90.0
    if is_polled and silent_s > max(after_s, STEPS * run.metrics.step_s):
        logs = (run.progress.last_line_at_ns or 0) / NS_PER_S > at
        text = f"no metrics for {duration(silent_s)}{', still logging' if logs else ''}"
        yield run.finding("warning", text, since_s=at)
    nodes = Presence(run, run.rules.limits(NodeLimits).missing_after_s)
    for silence in nodes.silences():
        # While a run shows life, a short gap in its metrics is nobody's problem.
        is_alive = silence.is_logging or (not silence.died and run.makes_progress)
        if is_alive and silence.lasts_s > max(after_s, STEPS * silence.step_s):
            evidence = ", still logging" if silence.node in nodes.logging else "; the run is still logging"
            text = f"{silence.node}: no metrics for {duration(silence.lasts_s)}{evidence}"
            yield run.finding("warning", text, node=silence.node, since_s=silence.since)
    for name in nodes.absent()[1]:
        text = f"{name}: no metrics since it started, still logging"
        yield run.finding("warning", text, node=name, since_s=nodes.first_at)


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
