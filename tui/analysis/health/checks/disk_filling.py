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
    needs="usage that has grown in each part of the window (or of four times that window), will be full"
    " before the run ends, and is above 90%, or full within 10 minutes, or has grown for an hour; or"
    " usage above `disk_share`.",
    excused="the first 15 minutes of training, growth that slows down or rests, a sawtooth up to its highest"
    " level so far, and steps of which the next one still fits (old checkpoints may be pruned in time).",
    costs="nothing until it is full, then the work since the last checkpoint",
    examples=(
        Example("a disk that fills", "disk full in", disk=lambda at: 0.55 + at / 3600 * 0.18),
        Example("checkpoints that are pruned", minutes=360, disk=lambda at: 0.3 + 0.3 * (at % 3600 / 3600)),
    ),
)
