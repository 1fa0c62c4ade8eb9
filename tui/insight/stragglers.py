"""Which nodes hold the others up."""

from __future__ import annotations

from statistics import median

from tui.insight.node_metrics import MetricsSnapshot
from tui.insight.series import mean_between

WINDOW_S = 300.0
"""How long a node has to lag before it is called slow."""

MARGIN = 0.8
"""A node is slow below that part of the other nodes' median utilisation."""

BUSY = 0.2
"""Unless the others are at least that busy, nobody waits for anybody."""

_PARTS = 2  # the lag must show in each half of the window, or it is a passing dip


def slow_nodes(snapshot: MetricsSnapshot) -> frozenset[str]:
    """Names of the nodes whose GPUs were clearly less busy than the others' all through the last minutes.

    With two nodes the one is measured by the other. A node that says nothing is not slow but silent.
    """
    if snapshot.at is None or len(snapshot.nodes) < 2:
        return frozenset()
    part_s = WINDOW_S / _PARTS
    slow = {node.name for node in snapshot.nodes}
    for part in range(_PARTS):
        end = snapshot.at - part * part_s
        means = {}
        for node in snapshot.nodes:
            mean = mean_between(node.mean_utilization, end - part_s, end)
            if mean is not None:
                means[node.name] = mean
        slow &= {name for name in means if _lags(name, means)}
    return frozenset(slow)


def _lags(name: str, means: dict[str, float]) -> bool:
    others = [mean for other, mean in means.items() if other != name]
    if not others:
        return False
    usual = median(others)
    return usual >= BUSY and means[name] < MARGIN * usual
