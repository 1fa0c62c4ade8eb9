"""A node's disk that fills up or is nearly full."""

from __future__ import annotations

from tui.analysis.health import storage
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched


def find(run: Watched, limits: storage.Limits) -> Findings:
    several = len(run.metrics.nodes) > 1
    for node in run.metrics.nodes:
        name = f"disk of {node.name}" if several else "disk"
        yield from storage.filling(run, limits, node.disk_utilization, name, node.name if several else None)


CHECK = Check(
    FindingKind("disk-filling", 100, "disk filling up", note="▤ disk", figures=("disk",)),
    "Disk filling up",
    "warning; critical if it is nearly full and will be within an hour",
    storage.Limits,
    find,
    needs=storage.NEEDS,
    excused=storage.EXCUSED,
    costs="nothing until it is full, then the work since the last checkpoint",
    examples=(
        Example("a disk that fills", "disk full in", disk=lambda at: 0.55 + at / 3600 * 0.18),
        Example("checkpoints that are pruned", minutes=360, disk=lambda at: 0.3 + 0.3 * (at % 3600 / 3600)),
    ),
)
