"""Which nodes are there: by the metrics they send and the lines they log.

A node is missing if it sends neither metrics nor log lines. While it logs, only its metrics are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from api_client.models.logs import NS_PER_S
from tui.analysis.health.watched import Watched
from tui.analysis.node_metrics import LEADER, NodeSnapshot
from tui.analysis.progress.snapshot import ReplicaLog

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
