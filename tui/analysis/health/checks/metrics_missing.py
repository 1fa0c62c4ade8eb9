"""Nodes that run without metrics, or metrics that ended for the whole job."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.checks import node_missing
from tui.analysis.health.presence import STEPS, Presence
from tui.text.units import counted, duration


@dataclass(frozen=True, slots=True)
class Limits:
    metrics_after_s: float = limit(
        600.0, "Maximum age of a job's newest metrics before they are reported as missing."
    )


def find(run: Watched, limits: Limits) -> Findings:
    at = run.metrics.at
    if at is None or not run.metrics.nodes:
        return
    missing = run.rules.limits(node_missing.Limits)
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


CHECK = Check(
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
    Limits,
    find,
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
