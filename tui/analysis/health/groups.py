"""Groups of nodes that have worked alike over the whole run so far.

In reinforcement learning some nodes train while others generate, and a leader may only serve: such nodes
differ from the beginning, take turns, or change together. A node that slows the others down was like them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import floor

from tui.analysis.health.watched import WORKING
from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.series import Series

BIN_S = 150.0
"""Length of the bins in which nodes are compared; within it, samples and phases of a step average out."""

_LEAST_BINS = 4
"""Only so many bins show how two nodes work."""

_ALIKE = 0.88
"""Two nodes are alike in a bin if the less busy one has this share of the other's use …"""

_MOSTLY = 0.75
"""… and work alike if they are so in this share of the bins."""


def bins_of(series: Series) -> Mapping[int, float]:
    """Return the means by bin number."""
    sums: dict[int, tuple[float, int]] = {}
    for time, value in zip(series.times, series.values, strict=True):
        if value == value:
            total, count = sums.get(number := floor(time / BIN_S), (0.0, 0))
            sums[number] = (total + value, count + 1)
    return {number: total / count for number, (total, count) in sums.items()}


@dataclass(frozen=True, slots=True)
class Likeness:
    """Comparison of two nodes: whether they worked alike, and since when (epoch s) they no longer do."""

    worked_alike: bool
    apart_since: float | None = None


class Groups:
    """Compares nodes with each other, by their GPU use."""

    def __init__(self, nodes: Sequence[NodeSnapshot]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self._bins = {name: bins_of(node.mean_utilization) for name, node in self.nodes.items()}
        self._memory = {name: bins_of(node.mean_memory) for name, node in self.nodes.items()}
        self.likeness = cache(self._likeness)

    def peers(self, name: str) -> list[str]:
        """Return the nodes that have worked like this one, at least until lately."""
        return [
            other
            for other in self.nodes
            if other != name and self.likeness(*sorted((name, other))).worked_alike
        ]

    def is_near(self, name: str, others: Sequence[str], share: float) -> bool:
        """Return True if a node was nearly always this share as busy as the busiest of the others."""
        pairs = [
            (own, max(self._bins[other].get(at, 0.0) for other in others))
            for at, own in self._bins[name].items()
        ]
        worked = [own >= share * most for own, most in pairs if most >= WORKING]
        return sum(worked) >= 0.9 * len(worked)

    def hold_alike(self, names: Iterable[str]) -> bool:
        """Return True if these nodes have as much in their GPUs' memory, as far as that is known."""
        levels = [max(self._memory[name].values()) for name in names if self._memory[name]]
        return not levels or min(levels) >= _ALIKE * max(levels)

    def _likeness(self, one: str, other: str) -> Likeness:
        own, others = self._bins[one], self._bins[other]
        common = [at for at in sorted(own.keys() & others.keys()) if max(own[at], others[at]) >= WORKING]
        alike = [min(own[at], others[at]) >= _ALIKE * max(own[at], others[at]) for at in common]
        apart = _apart_from(alike)
        before = alike[:apart]
        since = common[apart] * BIN_S if apart < len(common) else None
        worked_alike = len(before) >= _LEAST_BINS and sum(before) >= _MOSTLY * len(before)
        return Likeness(worked_alike, since)


def _apart_from(alike: Sequence[bool]) -> int:
    """Return the position from which two nodes are mostly not alike any more; their number if they are."""
    position, differing = len(alike), 0
    for count, is_alike in enumerate(reversed(alike), 1):
        differing += not is_alike
        if not is_alike and differing >= _MOSTLY * count:
            position = len(alike) - count
    return position
