"""Disks and caches that fill up or are nearly full."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from tui.analysis.health.check import HOUR_S, Findings, Severity, Watched, limit
from tui.analysis.health.growth import forecast
from tui.analysis.health.windows import holds_since
from tui.analysis.series import Series, latest
from tui.text.units import duration, percent


@dataclass(frozen=True, slots=True)
class Limits:
    disk_share: float = limit(0.95, "Share of a disk or cache in use above which it is nearly full.")
    disk_window_s: float = limit(
        900.0, "Time window over which usage must grow steadily to be reported (or four times that window)."
    )
    disk_growth: float = limit(0.01, "Minimum growth in the time window, as a share of the size.")
    disk_full_within_s: float = limit(
        21600.0,
        "Growth is reported only if the disk or cache will be full within this time, and before the run"
        " ends.",
    )


def filling(run: Watched, limits: Limits, utilization: Series, name: str, node: str | None) -> Findings:
    used = latest(utilization)
    if used is None:
        return
    is_held = run.is_held(node)
    # Growth in bursts shows only over a longer time.
    for window_s in (limits.disk_window_s, 4 * limits.disk_window_s):
        ahead = forecast(
            run,
            utilization,
            1.0,
            window_s=window_s,
            growth=limits.disk_growth,
            full_within_s=limits.disk_full_within_s,
            held=is_held,
            used=used,
        )
        if ahead is not None and not _has_room(utilization, used, window_s, ahead.rate):
            # A run's first checkpoints may be pruned in time: only what is nearly full is sure to fill.
            is_urgent = ahead.full_in_s < HOUR_S and used >= limits.disk_share
            text, short = f"{name} is {percent(used)} full", f"{name} full"
            if ahead.full_in_s >= 1:
                text += f", will be full in {duration(ahead.full_in_s)}"
                short += f" in {duration(ahead.full_in_s)}"
            severity: Severity = "critical" if is_urgent else "warning"
            yield run.finding(severity, text, short=short, node=node, since_s=ahead.since)
            return
    nearly_full = run.eased(limits.disk_share, limits.disk_share - 0.1, held=is_held)
    if used >= nearly_full:
        since = holds_since(utilization, lambda value: value >= nearly_full)
        yield run.finding("warning", f"{name} is {percent(used)} full", node=node, since_s=since)


def _has_room(utilization: Series, used: float, window_s: float, rate: float) -> bool:
    """Return True if usage grew in steps and the next one fits: old checkpoints may be pruned in time."""
    first = bisect_left(utilization.times, utilization.times[-1] - window_s)
    step = max((b - a for a, b in pairwise(utilization.values[first:])), default=0.0)
    # A step is so much of the growth; so many of them must fit.
    return step >= 0.4 * rate * window_s and (1 - used) >= 1.75 * step
