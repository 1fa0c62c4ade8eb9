"""Nodes that stopped sending data, or never did."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.presence import Presence
from tui.text.units import counted, duration


@dataclass(frozen=True, slots=True)
class Limits:
    missing_after_s: float = limit(
        180.0,
        "Minimum time without samples, while other nodes send some, before a node is reported as missing.",
    )


def find(run: Watched, limits: Limits) -> Findings:
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


CHECK = Check(
    FindingKind(
        "node-missing", 60, "{node} missing", "a node missing", "✗ lost", states_duration=True, lines="quiet"
    ),
    "Missing node",
    "critical; warning for nodes that never appeared",
    Limits,
    find,
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
