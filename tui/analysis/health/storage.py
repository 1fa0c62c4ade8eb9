"""Disks and caches that fill up or are nearly full."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from tui.analysis.health import growth
from tui.analysis.health.check import HOUR_S, Findings, Severity, Watched, limit
from tui.analysis.health.windows import holds_since
from tui.analysis.series import Series, latest
from tui.text.units import duration, percent


@dataclass(frozen=True, slots=True)
class Limits(growth.Limits):
    disk_share: float = limit(0.95, "Share of a disk or cache in use above which it is nearly full.")


def filling(run: Watched, limits: Limits, utilization: Series, name: str, node: str | None) -> Findings:
    used = latest(utilization)
    if used is None:
        return
    is_held = run.is_held(node)
    nearly_full = run.eased(limits.disk_share, limits.disk_share - 0.1, held=is_held)
    text, short = f"{name} is {percent(used)} full", f"{name} full"
    ahead = growth.forecast(run, limits, utilization, 1.0, held=is_held)
    if ahead is not None and (is_held or not _has_room(utilization, used, 4 * limits.growth_window_s)):
        if ahead.full_in_s >= 1:
            text += f", will be full in {duration(ahead.full_in_s)}"
            short += f" in {duration(ahead.full_in_s)}"
        # A run's first checkpoints may be pruned in time: only what is nearly full is sure to fill.
        is_urgent = ahead.full_in_s < HOUR_S and used >= limits.disk_share
        severity: Severity = "critical" if is_urgent else "warning"
        yield run.finding(severity, text, short=short, node=node, since_s=ahead.since)
    elif used >= nearly_full:
        since = holds_since(utilization, lambda value: value >= nearly_full)
        yield run.finding("warning", text, node=node, since_s=since)


def _has_room(utilization: Series, used: float, window_s: float) -> bool:
    """Return True if usage grew in steps and the next one fits: old checkpoints may be pruned in time."""
    first = bisect_left(utilization.times, utilization.times[-1] - window_s)
    steps = [max(0.0, b - a) for a, b in pairwise(utilization.values[first:])]
    largest = max(steps, default=0.0)
    return largest >= 0.1 * sum(steps) and (1 - used) >= 1.75 * largest
