"""A cache that fills up or is nearly full."""

from __future__ import annotations

from tui.analysis.health import storage
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched


def find(run: Watched, limits: storage.Limits) -> Findings:
    return storage.filling(run, limits, run.metrics.cache_utilization, "cache", None)


CHECK = Check(
    FindingKind("cache-filling", 110, "cache filling up", figures=("cache",)),
    "Cache filling up",
    "warning; critical if it is nearly full and will be within an hour",
    storage.Limits,
    find,
    needs="the same as a disk, with the same thresholds.",
    costs="nothing until it is full, then all jobs that write to it",
    examples=(
        Example("a cache that fills", "cache full in", cache=lambda at: 0.55 + at / 3600 * 0.18),
        Example("a cache that is half full", cache=0.5),
    ),
)
