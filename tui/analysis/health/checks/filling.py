"""Disks, caches and memory that fill up or are nearly full.

Caches that are garbage-collected and checkpoints that are pruned make a sawtooth, so only growth beyond the
highest level so far counts.
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
from tui.analysis.health.windows import (
    first_time,
    holds_since,
    segment_means,
    since_start,
)
from tui.analysis.series import Series, latest, values_between
from tui.text.units import BYTES_PER_MIB, bytes_iec, duration, percent

_SEGMENTS, _STEADY_FRACTION = 4, 0.4
"""Growth is steady if each of ``_SEGMENTS`` segments of the window has this fraction of the mean growth."""

_PROVEN_S = 45 * MINUTE_S
"""GPU memory that has grown for this long without slowing down will keep growing."""

_NEARLY_FULL, _SAWTOOTH_S = 0.95, 3 * HOUR_S
"""A first rise that will end by itself (a sawtooth, data that is read once) ends before either of these: this
fraction of a disk, this time."""


@dataclass(frozen=True, slots=True)
class GrowthLimits:
    growth_window_s: float = limit(
        900.0, "Time window over which a disk, a cache or memory must grow (or four times that window)."
    )
    full_within_s: float = limit(
        21600.0, "Growth is reported only if it fills up within this time, and before the run ends."
    )


class Forecast(NamedTuple):
    """When a disk, a cache or memory will be full."""

    rate: float
    """Growth per second, in the unit of the series."""
    full_in_s: float
    since: float
    """Start of the growth (epoch s)."""
    is_sure: bool
    """True if the growth has lasted long enough to expect that it continues."""
    is_early: bool
    """True if the growth began within half an hour of the first values."""
    is_near: bool
    """True if 95% is in use."""


def forecast(
    run: Watched,
    limits: GrowthLimits,
    series: Series,
    size: float,
    *,
    held: bool = False,
    sure_s: float = _SAWTOOTH_S,
) -> Forecast | None:
    """Predict when a steadily growing series reaches ``size``; None unless that is before the run ends.

    The growth is expected to continue once it has lasted for ``sure_s`` without slowing down; before that, it
    is reported only above 70%. Values before ``run.growth_since`` are ignored, since memory and disks fill
    while a model is downloaded and loaded.
    """
    now, at = latest(series), run.metrics.at
    grown = since_start(series, run.growth_since)
    highest = Series("", grown.times, tuple(accumulate(grown.values, max, initial=0.0))[1:])
    used = highest.values[-1] if grown.times else 0.0  # the maximum is steadier than the newest value
    if now is None or at is None or not grown.times or used < 0.5 * size:
        return None
    known_s = min(8 * limits.growth_window_s, at - grown.times[0])
    quarters = segment_means([highest], at, known_s / _SEGMENTS, _SEGMENTS)
    slows = len(quarters) == _SEGMENTS and quarters[3] - quarters[2] < 0.75 * (quarters[1] - quarters[0])
    if slows and not held:
        return None
    # Growth in bursts is steady only over a longer window.
    for window_s in (limits.growth_window_s, 4 * limits.growth_window_s):
        segment_s = window_s / _SEGMENTS
        begin, means = at - window_s, segment_means([highest], at, segment_s, _SEGMENTS)
        is_known = len(means) == _SEGMENTS and grown.times[0] <= begin + segment_s / 2
        if not is_known or now < _highest_until(highest, begin):
            continue
        rate = (_highest_until(highest, at) - _highest_until(highest, begin)) / window_s
        if rate * window_s <= run.eased(0.02, 0.0, held=held) * size:
            continue
        # If the finding exists already, growth may pause for a segment.
        newest = _highest_until(highest, at) - _highest_until(highest, at - segment_s * (2 if held else 1))
        growths = [newest] if held else [newest, *(after - before for before, after in pairwise(means))]
        if min(growths) < _STEADY_FRACTION * rate * segment_s:
            continue
        full_in_s = max(0.0, size - used) / rate
        since = begin
        # Noise leaves segments without growth, so try the whole window, too.
        while any(
            _highest_until(highest, since) - _highest_until(highest, since - span_s)
            >= _STEADY_FRACTION * rate * span_s
            for span_s in (segment_s, window_s)
        ):
            since -= segment_s
        since = max(since, grown.times[0])
        matters_s = min(limits.full_within_s, run.left_s)
        if full_in_s <= run.eased(matters_s, 2 * matters_s, held=held):
            is_sure = not slows and at - since >= sure_s
            if is_sure or used >= 0.7 * size:
                is_early, is_near = since < grown.times[0] + HOUR_S / 2, used >= _NEARLY_FULL * size
                return Forecast(rate, full_in_s, since, is_sure, is_early, is_near)
    return None


def _has_grown(run: Watched, series: Series, level: float) -> bool:
    """Return False if a series had reached ``level`` during start-up: then the run is configured so."""
    return first_time(series, level) > max(run.growth_since, series.times[0])


def _highest_until(highest: Series, at: float) -> float:
    return highest.values[max(0, bisect_right(highest.times, at) - 1)]


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
    ahead = forecast(run, limits, utilization, 1.0, held=is_held) if used >= 0.7 else None
    if ahead is not None:
        if ahead.full_in_s >= 1:
            text += f", will be full in {duration(ahead.full_in_s)}"
            short += f" in {duration(ahead.full_in_s)}"
        # A run may prune its first checkpoints in time: warn only if the disk is nearly full, or growth sure.
        is_near = ahead.is_near or ahead.full_in_s <= limits.growth_window_s
        severity: Severity = "warning" if is_near or ahead.is_sure else "info"
        if ahead.full_in_s < HOUR_S and used >= limits.disk_share:
            severity = "critical"
        yield run.finding(run.lasting(severity, node), text, short=short, node=node, since_s=ahead.since)
    elif used >= nearly_full:
        since = holds_since(utilization, lambda value: value >= nearly_full)
        severity = "warning" if _has_grown(run, utilization, nearly_full) else "info"
        yield run.finding(run.lasting(severity, node), text, node=node, since_s=since)


def filling_disks(run: Watched, limits: StorageLimits) -> Findings:
    several = len(run.metrics.nodes) > 1
    for node in run.metrics.nodes:
        name = f"disk of {node.name}" if several else "disk"
        yield from filling(run, limits, node.disk_utilization, name, node.name if several else None)


DISK = Check(
    FindingKind("disk-filling", 100, "disk filling up", note="▤ disk", figures=("disk",)),
    "Disk filling up",
    "info; warning if it is nearly full; critical if it will also be full within an hour",
    StorageLimits,
    filling_disks,
    needs="usage above 70% that has grown in each quarter of the window (or of four times that window) and"
    " will be full before the run ends; or usage above `disk_share`. A warning from 95% on, one window"
    " before it is full, or after three hours of growth.",
    excused="the first 15 minutes of training, growth that slows down, and a sawtooth up to its highest level"
    " so far. Reported as info: a disk that was nearly full when the run started.",
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
    "info; warning if it is nearly full; critical if it will also be full within an hour",
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
    machine, nodes = run.run.job.instance_type, run.metrics.nodes
    leaks = [
        (ahead.full_in_s, node.name, memory, ahead)
        for node in nodes
        for memory, series, limit_mib, sure_s in (
            *(
                (f"GPU memory of {node.name} GPU {gpu}", series, machine.gpu_memory_limit_mib, _PROVEN_S)
                for gpu, series in zip(node.gpus, node.gpu_memory, strict=True)
            ),
            (f"memory of {node.name}", node.cpu_memory, machine.memory_limit_mib, 2 * HOUR_S),
        )
        if limit_mib
        and (ahead := forecast(run, limits, series, limit_mib * BYTES_PER_MIB, sure_s=sure_s)) is not None
    ]
    if not leaks:
        return
    full_in_s, _, memory, worst = min(leaks)
    more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
    full = duration(full_in_s)
    names = {name for _, name, _, _ in leaks}
    # The page cache fills with the data that is read: on all nodes alike, from the start, until all is read.
    lasts_s = run.now_s - worst.since
    used = [latest(node.cpu_memory) or 0.0 for node in nodes]
    is_cache = not memory.startswith("GPU") and (
        min(used) > 0.9 * max(used)
        and worst.is_early
        and lasts_s < _SAWTOOTH_S
        and (run.progress.epoch or 0) < 2
    )
    # Growth is proven once it has lasted as long as it still needs to fill the memory.
    is_proven = worst.is_sure or lasts_s >= max(_PROVEN_S, worst.full_in_s)
    is_sure = (worst.is_near or (is_proven and not is_cache)) and not run.steps_take_longer(worst.since)
    text = f"{memory}{more} leaks {bytes_iec(worst.rate * 3600)}/h: full in {full}"
    node = names.pop() if len(names) == 1 < len(nodes) else None
    yield run.finding(
        run.lasting("warning" if is_sure else "info", node),
        text,
        short=f"{memory} full in {full}",
        node=node,
        since_s=min(ahead.since for _, _, _, ahead in leaks),
    )


MEMORY = Check(
    FindingKind("memory-leak", 90, "memory leak", note="↗ leak", figures=("memory", "GPU memory")),
    "Memory leak",
    "info; warning once it has lasted",
    GrowthLimits,
    leaking_memory,
    needs="memory of a GPU or node above 70% that has grown in each quarter of the window and will be full"
    " before the run ends. A warning after 45 minutes of growth of GPU memory; of a node's after two hours,"
    " or 45 minutes and as long as it will take to be full; in the first two epochs after three hours if that"
    " of all nodes grows from the start, as caches do; or from 95% on.",
    excused="the first 15 minutes of training, growth that slows down, and a sawtooth, up to its highest"
    " level since the last restart. Reported as info: memory of steps that take longer than before.",
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
    size, at = (run.run.job.instance_type.gpu_memory_limit_mib or 0) * BYTES_PER_MIB, run.metrics.at or 0.0
    # 90% of the limit is healthy: PyTorch's caching allocator leaves this room.
    threshold = size * run.eased(limits.gpu_memory_share, 0.9, held=bool(run.held_nodes))
    near = [
        (lowest / size, node.name, gpu, series)
        for node in run.metrics.nodes
        for gpu, series in zip(node.gpus, node.gpu_memory, strict=True)
        if size and (lowest := min(values_between(series, at - 2 * MINUTE_S), default=0.0)) >= threshold
    ]
    if not near:
        return
    share, name, gpu, _ = max(near)
    has_grown = any(_has_grown(run, series, threshold) for *_, series in near)
    where = f"{name} GPU {gpu}" + (f" and {len(near) - 1} more" if len(near) > 1 else "")
    yield run.finding(
        "warning" if has_grown else "info",
        f"GPU memory at {percent(share)} of {bytes_iec(size)}: {where}",
        short=f"GPU memory {percent(share)} full: {where}",
        node=name if len(near) == 1 < len(run.metrics.nodes) else None,
        since_s=min(first_time(series, threshold) for *_, series in near),
    )


GPU_MEMORY = Check(
    FindingKind("gpu-memory", 80, "GPU memory full", note="■ full", figures=("GPU memory",)),
    "GPU memory near its limit",
    "info; warning if it has grown to it",
    GpuMemoryLimits,
    full_gpu_memory,
    needs="a GPU whose memory stays above `gpu_memory_share` of its limit for two minutes.",
    excused="peaks. Reported as info: a level of the first 15 minutes of training, which is what the run"
    " was configured to take.",
    costs="nothing until an allocation fails, then the work since the last checkpoint",
    examples=(
        Example(
            "memory that has grown to its limit",
            "GPU memory 99% full: node-0 GPU 1 and 1 more",
            gpu_memory_gib=lambda at: 79.2 if at > 3600 else 70.0,
        ),
        Example("an allocator that takes most of it", gpu_memory_gib=74.0),
    ),
)
