"""Nodes that stopped sending data or never sent any, and nodes that run without metrics.

A node is missing if it sends neither metrics nor log lines. If it logs, only its metrics are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import (
    MINUTE_S,
    Check,
    Example,
    FindingKind,
    Findings,
    Severity,
    Watched,
    limit,
)
from tui.analysis.node_metrics import LEADER, NodeSnapshot
from tui.text.units import counted, duration

_MISSABLE = 4
"""Number of samples or log lines that a node may miss before it counts as silent."""


class Silence(NamedTuple):
    """A node that sends a sample every ``step_s``, but has sent none since ``since`` (epoch s)."""

    node: str
    lasts_s: float
    since: float
    step_s: float
    logs: bool
    """True if the node still writes to the log."""
    died: bool
    """True if the node's log stopped at about the same time; if the log has other names than the metrics, any
    node's log."""


class Presence:
    """Which nodes send samples and log lines, compared with the newest data read.

    Not with the current time: nodes do not become silent because nothing is read.
    """

    def __init__(self, run: Watched, missing_after_s: float) -> None:
        at = run.metrics.at or 0.0
        # A server may report only the leader, which is no problem.
        names = [node.name for node in run.metrics.nodes if node.name != LEADER]
        spans = {node.name: span for node in run.metrics.nodes if (span := _span(node)) is not None}
        log_at = max(at, run.last_line_s)
        self.last_line_s = {each.name: each.last_at_ns / NS_PER_S for each in run.progress.replicas}
        self.quiet_s = {name: log_at - last_s for name, last_s in self.last_line_s.items()}
        patience_s = {each.name: _MISSABLE * each.interval_s for each in run.progress.replicas}
        self.logging = {
            name
            for name, quiet_s in self.quiet_s.items()
            if quiet_s <= max(missing_after_s, patience_s[name])
        }
        # Replicas may have other names in the log than nodes in the metrics.
        is_named = any(name in self.quiet_s for name in names)
        expected = run.run.job.node_count or 0
        self.silences: list[Silence] = []
        for name in names:
            _, last, step_s = spans.get(name, (at, at, 0.0))
            if at - last > max(missing_after_s, _MISSABLE * step_s):
                died = any(
                    abs(log_at - quiet_s - last) <= max(600.0, patience_s[other])
                    for other, quiet_s in self.quiet_s.items()
                    if other not in self.logging and (other == name or not is_named)
                )
                self.silences.append(Silence(name, at - last, last, step_s, name in self.logging, died))
        if 0 < expected <= len(names) - len(self.silences):  # Other nodes replaced the silent nodes.
            self.silences = []
        self.first_at = min((first for first, _, _ in spans.values()), default=at)
        unseen = sorted(self.logging.difference(names)) if is_named else []
        count = max(0, expected - len(names)) if len(names) > 1 and at - self.first_at > 300.0 else 0
        self.only_logging = unseen[:count]
        """Nodes that log, but never sent a sample."""
        self.absent_count = count - len(self.only_logging)
        """Number of nodes that never sent a sample or a log line."""


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


def _left_by_design(run: Watched, silence: Silence) -> bool:
    """Return True if the node left near a resize in the log or a start of an attempt, and steps continue.

    A resize more than two minutes later is none by design: it only shows how the run continues after a loss.
    """
    changes = (run.attempt_since, *run.progress.resizes)
    start, end = silence.since - 10 * MINUTE_S, min(silence.since + 2 * MINUTE_S, run.last_step_s or 0.0)
    return any(start < change < end and not run.follows_error(change) for change in changes)


def _severity(run: Watched, silence: Silence) -> Severity:
    """Return critical if the steps stopped with the node; if they continue, it may not be needed."""
    if _left_by_design(run, silence):
        return "info"
    waited_s = max(2 * MINUTE_S, 3 * (run.progress.step_interval_s or 0.0))
    if (run.last_step_s or 0.0) <= silence.since + waited_s:
        return "critical"
    return "warning" if silence.lasts_s > 10 * MINUTE_S else "info"


def missing_nodes(run: Watched, limits: NodeLimits) -> Findings:
    nodes = Presence(run, limits.missing_after_s)
    for silence in nodes.silences:
        name, lasts = silence.node, duration(silence.lasts_s)
        if silence.logs or (not silence.died and run.makes_progress):
            continue
        text = f"{name} has sent no metrics for {lasts}, unlike the others"
        if silence.died:
            quiet = duration(nodes.quiet_s.get(name, silence.lasts_s))
            text = f"{name} is missing: no metrics for {lasts}, no log line for {quiet}"
        short = f"{name} silent for {lasts}"
        yield run.finding(_severity(run, silence), text, short=short, node=name, since_s=silence.since)
    if nodes.absent_count:
        expected = run.run.job.node_count or 0
        reporting = expected - nodes.absent_count
        never = counted(nodes.absent_count, "node has", "nodes have")
        text = f"{never} never sent metrics: {reporting} of {expected} reporting"
        short = f"{reporting} of {counted(expected, 'node')} reporting"
        # If the run makes steps, the nodes may join later, as in elastic training.
        severity: Severity = "info" if run.last_step_s is not None and run.makes_progress else "warning"
        yield run.finding(severity, text, short=short, since_s=nodes.first_at)


NODES = Check(
    FindingKind(
        "node-missing",
        60,
        "{node} missing",
        "a node missing",
        "✗ lost",
        states_duration=True,
        lines="quiet",
        figures=("GPU use",),
    ),
    "Missing node",
    "critical; warning for nodes that never appeared, or without which the run makes steps",
    NodeLimits,
    missing_nodes,
    needs="a node that sends no more samples while others do, and whose log fell silent at the same time, or"
    " a run that has stalled as well.",
    excused="a node that still logs, silence of a node that never logs (often only rank 0 does) while the"
    " run makes progress, nodes that were replaced, and a server that reports only the leader. Reported as"
    " info: nodes that never appeared, if the run makes steps; a node that left according to the log, or"
    " without which the run restarted or (ten minutes) continued.",
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
    requested_at = run.run.health_metrics_at if run.run.health_metrics is not None else run.run.metrics_at
    silent_s = run.now_s - at
    still_logs = run.now_s - run.last_line_s < after_s
    # Metrics that were not requested for 90 s are old only because nothing polls them.
    is_polled = requested_at is not None and (run.run.at - requested_at).total_seconds() <= 90.0
    if is_polled and silent_s > max(after_s, _MISSABLE * run.metrics.step_s):
        text = f"no metrics for {duration(silent_s)}{', still logging' if still_logs else ''}"
        yield run.finding("warning", text, since_s=at)
    missing_after_s = run.rules.limits(NodeLimits).missing_after_s
    nodes = Presence(run, missing_after_s)
    for silence in nodes.silences:
        # A node that logs, or whose run makes progress, is alive: only a long gap in its metrics is reported.
        is_alive = silence.logs or (
            not silence.died and run.makes_progress and not _left_by_design(run, silence)
        )
        if is_alive and silence.lasts_s > max(after_s, _MISSABLE * silence.step_s):
            evidence = "; the run is still logging" if still_logs else ""
            if nodes.last_line_s.get(silence.node, 0.0) > silence.since:
                evidence = ", still logging"
            text = f"{silence.node}: no metrics for {duration(silence.lasts_s)}{evidence}"
            yield run.finding("warning", text, node=silence.node, since_s=silence.since)
    silent_nodes = {silence.node for silence in nodes.silences}
    for node in run.metrics.nodes:
        gone = [] if node.name in silent_nodes else _lost_gpus(run, node, missing_after_s)
        if gone:
            since, gpu = min(gone)
            more = f" (and {len(gone) - 1} more)" if len(gone) > 1 else ""
            silent = duration(at - since)
            text = f"{node.name}: no metrics of GPU {gpu}{more} for {silent}, unlike its other GPUs"
            yield run.finding("warning", text, node=node.name, since_s=since)
    for name in nodes.only_logging:
        text = f"{name}: no metrics since it started, still logging"
        yield run.finding("warning", text, node=name, since_s=nodes.first_at)


def _lost_gpus(run: Watched, node: NodeSnapshot, missing_after_s: float) -> list[tuple[float, str]]:
    """Return the GPUs that send no more samples while their node does, and since when (epoch s)."""
    _, last, step_s = _span(node) or (0.0, 0.0, 0.0)
    ends = (
        (curve.times[-1], gpu)
        for gpu, curve in zip(node.gpus, node.gpu_utilization, strict=True)
        if curve.times
    )
    end = last - max(missing_after_s, _MISSABLE * step_s)
    return [(since, gpu) for since, gpu in ends if run.attempt_since < since < end]


METRICS = Check(
    FindingKind(
        "metrics-missing",
        70,
        "{node}: metrics missing",
        "metrics missing",
        "? metrics",
        states_duration=True,
        lines="quiet",
        figures=("GPU use",),
    ),
    "Missing metrics",
    "warning",
    MetricsLimits,
    missing_metrics,
    needs="a node without samples for `metrics_after_s` whose log lines, or those of the run, show that it"
    " is there; a GPU without samples for `missing_after_s`, unlike its node; or no node that sends samples,"
    " although the server responds.",
    excused="no response, a node that leaves as announced, shorter gaps.",
    costs="nothing by itself: other findings may be missed",
    examples=(
        Example(
            "a node whose metrics end",
            "node-1: no metrics for",
            gpu=(0.95, lambda at: 0.95 if at < 5400 else None),
        ),
        Example(
            "a node that is lost, without which the run goes on",
            "node-1: no metrics for",
            gpu=(0.95, lambda at: 0.95 if at < 5400 else None),
            others=tuple((at, f"membership changed: {n} nodes") for at, n in ((60.0, 2), (5800.0, 1))),
        ),
        Example(
            "a node that fails, and without which the run restarts at once",
            "node-1: no metrics for",
            gpu=(0.95, lambda at: 0.95 if at < 5400 else None),
            others=(
                (60.0, "membership changed: 2 nodes"),
                (5385.0, "RuntimeError: NCCL communicator was aborted"),
                (5390.0, "membership changed: 1 nodes"),
            ),
        ),
        Example(
            "a node that leaves by plan",
            gpu=(0.95, lambda at: 0.95 if at < 5400 else None),
            others=tuple((at, f"membership changed: {n} nodes") for at, n in ((60.0, 2), (5390.0, 1))),
        ),
        Example("eight minutes without samples", gpu=(0.95, lambda at: None if 6500 < at < 6980 else 0.95)),
    ),
)
