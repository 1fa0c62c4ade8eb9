"""Disks, caches and memory that fill up or are nearly full.

Caches that are collected and checkpoints that are pruned make a sawtooth. So only growth beyond the highest
level so far counts.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from tui.analysis.health.check import (
    HOUR_S,
    MINUTE_S,
    Check,
    Example,
    FindingKind,
    Findings,
    Severity,
    Watched,
    limit,
)
from tui.analysis.health.windows import holds_since, lowest_since, means_of_parts
from tui.analysis.series import Series, latest
from tui.text.units import BYTES_PER_MIB, bytes_iec, duration, percent

_PARTS, _STEADY = 4, 0.4
"""Steady growth has this share of its mean in each part of the time."""


@dataclass(frozen=True, slots=True)
class GrowthLimits:
    growth_window_s: float = limit(
        900.0, "Time window over which a disk, a cache or memory must grow (or four times that window)."
    )
    full_within_s: float = limit(
        21600.0, "Growth is reported only if it fills up within this time, and before the run ends."
    )


class Forecast(NamedTuple):
    """Growth per second, the time until the limit, and since when it grows (epoch s)."""

    rate: float
    full_in_s: float
    since: float


def forecast(
    run: Watched, limits: GrowthLimits, series: Series, size: float, *, held: bool
) -> Forecast | None:
    """Return when a series that grows steadily reaches its size, None unless that matters.

    While a model loads or is downloaded, memory and disks fill without meaning anything; so does growth in
    the lower half.
    """
    used, at = latest(series), run.metrics.at
    points = zip(series.times, series.values, strict=True)
    pairs = [(time, value) for time, value in points if value == value and time >= run.growth_since]
    if used is None or at is None or used < 0.5 * size or len(pairs) < _PARTS:
        return None
    times, values = zip(*pairs, strict=True)
    measured, highest = Series("", times, values), Series("", times, tuple(accumulate(values, max)))
    if not held and _slows(highest, at, 8 * limits.growth_window_s):
        return None
    # Growth in bursts shows only over a longer time.
    for window_s in (limits.growth_window_s, 4 * limits.growth_window_s):
        begin, part_s, means = at - window_s, window_s / _PARTS, _means(measured, at, window_s)
        rise = _level(highest, at) - _level(highest, begin)
        growth = (means[-1] - means[0]) / (window_s - part_s) if means else 0.0
        rate = min(growth, rise / window_s)
        # The teeth of a saw grow by much, and little beyond the highest before.
        if not held and rate < 0.75 * growth:
            continue
        if rate * window_s <= run.eased(0.01, 0.0, held=held) * size or used < _level(highest, begin):
            continue
        # A burst grows in one part only; once found, growth may pause.
        if not held and min(b - a for a, b in pairwise(means)) < _STEADY * rate * part_s:
            continue
        full_in_s = max(0.0, size - used) / rate
        since = begin
        while _level(highest, since) - _level(highest, since - part_s) >= _STEADY * rate * part_s:
            since -= part_s
        # A cache, a copy of the data, or the first tooth of a saw may end before: the fuller, the surer.
        lasting_s = 10 * HOUR_S * (0.9 - used / size)
        matters = held or full_in_s <= 10 * MINUTE_S or at - since >= lasting_s
        within_s = run.eased(limits.full_within_s, 2 * limits.full_within_s, held=held)
        if matters and full_in_s <= min(within_s, run.left_s):
            return Forecast(rate, full_in_s, max(since, times[0]))
    return None


def _means(series: Series, until: float, span_s: float) -> list[float]:
    """Return the means of the parts of a time span, oldest first; nothing if the series is shorter."""
    part_s = span_s / _PARTS
    is_long = series.times[0] <= until - span_s + part_s / 2
    return means_of_parts([series], until, part_s, _PARTS) if is_long else []


def _level(highest: Series, at: float) -> float:
    return highest.values[max(0, bisect_right(highest.times, at) - 1)]


def _slows(highest: Series, at: float, span_s: float) -> bool:
    """Return True if growth has slowed down, by what is known of a time span."""
    means = _means(highest, at, min(span_s, at - highest.times[0]))
    return len(means) == _PARTS and means[3] - means[2] < 0.75 * (means[1] - means[0])


@dataclass(frozen=True, slots=True)
class StorageLimits(GrowthLimits):
    disk_share: float = limit(0.95, "Share of a disk or cache in use above which it is nearly full.")


def filling(
    run: Watched, limits: StorageLimits, utilization: Series, name: str, node: str | None
) -> Findings:
    used = latest(utilization)
    if used is None:
        return
    is_held = run.is_held(node)
    nearly_full = run.eased(limits.disk_share, limits.disk_share - 0.1, held=is_held)
    text, short = f"{name} is {percent(used)} full", f"{name} full"
    ahead = forecast(run, limits, utilization, 1.0, held=is_held)
    if ahead is not None:
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


def filling_disks(run: Watched, limits: StorageLimits) -> Findings:
    several = len(run.metrics.nodes) > 1
    for node in run.metrics.nodes:
        name = f"disk of {node.name}" if several else "disk"
        yield from filling(run, limits, node.disk_utilization, name, node.name if several else None)


DISK = Check(
    FindingKind("disk-filling", 100, "disk filling up", note="▤ disk", figures=("disk",)),
    "Disk filling up",
    "warning; critical if it is nearly full and will be within an hour",
    StorageLimits,
    filling_disks,
    needs="usage that has grown in each quarter of the window (or of four times that window), will be full"
    " before the run ends, and is above 90%, or full within 10 minutes, or has grown for an hour"
    " for each 10% below; or usage"
    " above `disk_share`.",
    excused="the first 15 minutes of training, growth that slows down, and a sawtooth up to its highest level"
    " so far.",
    costs="nothing until it is full, then the work since the last checkpoint",
    examples=(
        Example("a disk that fills", "disk full in", disk=lambda at: 0.55 + at / 3600 * 0.18),
        Example("checkpoints that are pruned", minutes=360, disk=lambda at: 0.3 + 0.3 * (at % 3600 / 3600)),
    ),
)


def filling_cache(run: Watched, limits: StorageLimits) -> Findings:
    return filling(run, limits, run.metrics.cache_utilization, "cache", None)


CACHE = Check(
    FindingKind("cache-filling", 110, "cache filling up", figures=("cache",)),
    "Cache filling up",
    "warning; critical if it is nearly full and will be within an hour",
    StorageLimits,
    filling_cache,
    needs="the same as a disk, with the same thresholds.",
    costs="nothing until it is full, then all jobs that write to it",
    examples=(
        Example("a cache that fills", "cache full in", cache=lambda at: 0.55 + at / 3600 * 0.18),
        Example("a cache that is half full", cache=0.5),
    ),
)


def leaking_memory(run: Watched, limits: GrowthLimits) -> Findings:
    machine = run.run.job.instance_type
    gpu_limit = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    host_limit = (machine.memory_limit_mib or 0) * BYTES_PER_MIB
    is_held = bool(run.held_nodes)
    leaks: list[tuple[str, str, Forecast]] = []
    for node in run.metrics.nodes:
        gpus = zip(node.gpus, node.gpu_memory, strict=True)
        parts = [(f"GPU memory of {node.name} GPU {gpu}", series, gpu_limit) for gpu, series in gpus]
        for part, series, size in (*parts, (f"memory of {node.name}", node.cpu_memory, host_limit)):
            ahead = forecast(run, limits, series, size, held=is_held) if size else None
            if ahead is not None:
                leaks.append((node.name, part, ahead))
    if not leaks:
        return
    _, part, worst = min(leaks, key=lambda leak: leak[2].full_in_s)
    more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
    full = duration(worst.full_in_s)
    names = {name for name, _, _ in leaks}
    node_name = names.pop() if len(names) == 1 and len(run.metrics.nodes) > 1 else None
    text = f"{part}{more} leaks {bytes_iec(worst.rate * 3600)}/h: full in {full}"
    since = min(ahead.since for _, _, ahead in leaks)
    yield run.finding("warning", text, short=f"{part} full in {full}", node=node_name, since_s=since)


MEMORY = Check(
    FindingKind("memory-leak", 90, "memory leak", note="↗ leak", figures=("memory", "GPU memory")),
    "Memory leak",
    "warning",
    GrowthLimits,
    leaking_memory,
    needs="memory of a GPU or node that has grown in each quarter of the window, that will be full before the"
    " run ends, and that is above 90% of its limit, or full within 10 minutes, or has grown for an"
    " hour for each 10% below.",
    excused="the first 15 minutes of training, growth that slows down, and a sawtooth, up to its highest"
    " level since the last restart.",
    costs="nothing until memory is full, then the work since the last checkpoint",
    examples=(
        Example(
            "a data loader that leaks 40 GiB an hour",
            "memory of node-0 full in",
            minutes=360,
            memory_gib=lambda at: 120 + at / 3600 * 40,
        ),
        Example(
            "a cache that is collected", minutes=360, memory_gib=lambda at: 100 + 120 * (at % 4000 / 4000)
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class GpuMemoryLimits:
    gpu_memory_share: float = limit(0.97, "Share of GPU memory in use above which it is near its limit.")


def full_gpu_memory(run: Watched, limits: GpuMemoryLimits) -> Findings:
    size = (run.run.job.instance_type.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    if not size or run.metrics.at is None:
        return
    # Healthy is a tenth below the limit, the room that PyTorch's caching allocator leaves.
    threshold = size * run.eased(limits.gpu_memory_share, 0.9, held=bool(run.held_nodes))
    start = run.metrics.at - 2 * MINUTE_S
    near: list[tuple[float, str, str]] = []
    since = start
    for node in run.metrics.nodes:
        for gpu, series in zip(node.gpus, node.gpu_memory, strict=True):
            lowest = lowest_since(series, start)
            if lowest is not None and lowest >= threshold:
                near.append((lowest / size, node.name, gpu))
                since = min(since, holds_since(series, lambda value: value >= threshold) or since)
    if not near:
        return
    share, name, gpu = max(near)
    where = f"{name} GPU {gpu}" + (f" and {len(near) - 1} more" if len(near) > 1 else "")
    yield run.finding(
        "warning",
        f"GPU memory at {percent(share)} of {bytes_iec(size)}: {where}",
        short=f"GPU memory {percent(share)} full: {where}",
        node=name if len(run.metrics.nodes) > 1 and len(near) == 1 else None,
        since_s=since,
    )


GPU_MEMORY = Check(
    FindingKind("gpu-memory", 80, "GPU memory full", note="■ full", figures=("GPU memory",)),
    "GPU memory near its limit",
    "warning",
    GpuMemoryLimits,
    full_gpu_memory,
    needs="a GPU whose memory stays above `gpu_memory_share` of its limit for two minutes.",
    excused="peaks.",
    costs="nothing until an allocation fails, then the work since the last checkpoint",
    examples=(
        Example("memory at its limit", "GPU memory 99% full: node-0 GPU 1 and 1 more", gpu_memory_gib=79.2),
        Example("an allocator that takes most of it", gpu_memory_gib=74.0),
    ),
)
