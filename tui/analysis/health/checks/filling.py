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
from tui.analysis.health.windows import (
    first_time,
    holds_since,
    means_of_parts,
    since_start,
)
from tui.analysis.series import Series, latest, values_between
from tui.text.units import BYTES_PER_MIB, bytes_iec, duration, percent

_PARTS, _STEADY = 4, 0.4
"""Steady growth has this share of its mean in each part of the window."""

_LEAK_S = 45 * MINUTE_S
"""What has grown for so long without slowing down goes on."""

_NEARLY_FULL, _TOOTH_S = 0.95, 3 * HOUR_S
"""The first tooth of a saw, or what is read once, ends before: by this share of a disk, or this time."""


@dataclass(frozen=True, slots=True)
class GrowthLimits:
    growth_window_s: float = limit(
        900.0, "Time window over which a disk, a cache or memory must grow (or four times that window)."
    )
    full_within_s: float = limit(
        21600.0, "Growth is reported only if it fills up within this time, and before the run ends."
    )


class Forecast(NamedTuple):
    """Growth per second, the time until the limit, since when it grows (epoch s), and facts about that.

    ``is_sure``: it has lasted. ``is_early``: it began soon after the start. ``is_near``: hardly any is left.
    """

    rate: float
    full_in_s: float
    since: float
    is_sure: bool
    is_early: bool
    is_near: bool


def forecast(
    run: Watched,
    limits: GrowthLimits,
    series: Series,
    size: float,
    *,
    held: bool = False,
    sure_s: float = _TOOTH_S,
) -> Forecast | None:
    """Return when a series that grows steadily reaches its size, None unless that matters.

    It is sure to go on once it has lasted for ``sure_s`` without slowing down; before, only what is above
    70% matters.

    While a model loads or is downloaded, memory and disks fill without meaning anything.
    """
    now, at = latest(series), run.metrics.at
    grown = since_start(series, run.growth_since)
    highest = Series("", grown.times, tuple(accumulate(grown.values, max, initial=0.0))[1:])
    used = highest.values[-1] if grown.times else 0.0  # does not waver, as what is in use now does
    if now is None or at is None or not grown.times or used < 0.5 * size:
        return None
    known_s = min(8 * limits.growth_window_s, at - grown.times[0])
    quarters = means_of_parts([highest], at, known_s / _PARTS, _PARTS)
    slows = len(quarters) == _PARTS and quarters[3] - quarters[2] < 0.75 * (quarters[1] - quarters[0])
    if slows and not held:
        return None
    # Growth in bursts shows only over a longer time.
    for window_s in (limits.growth_window_s, 4 * limits.growth_window_s):
        part_s = window_s / _PARTS
        begin, means = at - window_s, means_of_parts([highest], at, part_s, _PARTS)
        is_known = len(means) == _PARTS and grown.times[0] <= begin + part_s / 2
        if not is_known or now < _level(highest, begin):
            continue
        rate = (_level(highest, at) - _level(highest, begin)) / window_s
        if rate * window_s <= run.eased(0.02, 0.0, held=held) * size:
            continue
        # Once found, growth may pause for as long as it was seen in bursts.
        newest = _level(highest, at) - _level(highest, at - part_s * (2 if held else 1))
        parts = [newest] if held else [newest, *(after - before for before, after in pairwise(means))]
        if min(parts) < _STEADY * rate * part_s:
            continue
        full_in_s = max(0.0, size - used) / rate
        since = begin
        # Noise leaves parts without growth.
        while any(
            _level(highest, since) - _level(highest, since - span_s) >= _STEADY * rate * span_s
            for span_s in (part_s, window_s)
        ):
            since -= part_s
        since = max(since, grown.times[0])
        matters_s = min(limits.full_within_s, run.left_s)
        if full_in_s <= run.eased(matters_s, 2 * matters_s, held=held):
            is_sure = not slows and at - since >= sure_s
            if is_sure or used >= 0.7 * size:
                is_early, is_near = since < grown.times[0] + HOUR_S / 2, used >= _NEARLY_FULL * size
                return Forecast(rate, full_in_s, since, is_sure, is_early, is_near)
    return None


def _has_grown(run: Watched, series: Series, level: float) -> bool:
    """Return False if a series was at that level when the run started: then it was configured to be."""
    return first_time(series, level) > max(run.growth_since, series.times[0])


def _level(highest: Series, at: float) -> float:
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
        # A run's first checkpoints may be pruned in time: only what is nearly full is sure to fill.
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
    " so far. To a remark (info): a disk that was nearly full when the run started.",
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
        (ahead.full_in_s, node.name, part, ahead)
        for node in nodes
        for part, series, limit_mib, sure_s in (
            *(
                (f"GPU memory of {node.name} GPU {gpu}", series, machine.gpu_memory_limit_mib, _LEAK_S)
                for gpu, series in zip(node.gpus, node.gpu_memory, strict=True)
            ),
            (f"memory of {node.name}", node.cpu_memory, machine.memory_limit_mib, 2 * HOUR_S),
        )
        if limit_mib
        and (ahead := forecast(run, limits, series, limit_mib * BYTES_PER_MIB, sure_s=sure_s)) is not None
    ]
    if not leaks:
        return
    full_in_s, _, part, worst = min(leaks)
    more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
    full = duration(full_in_s)
    names = {name for _, name, _, _ in leaks}
    # Memory that has room for the data fills with it, from the start and on all nodes alike, up to a level.
    lasts_s = run.now_s - worst.since
    uses = [latest(node.cpu_memory) or 0.0 for node in nodes]
    is_cache = not part.startswith("GPU") and (
        min(uses) > 0.9 * max(uses)
        and worst.is_early
        and lasts_s < _TOOTH_S
        and (run.progress.epoch or 0) < 2
    )
    # What has grown for as long as it will take to be full will be.
    is_proven = worst.is_sure or lasts_s >= max(_LEAK_S, worst.full_in_s)
    is_sure = (worst.is_near or (is_proven and not is_cache)) and not run.steps_take_longer(worst.since)
    text = f"{part}{more} leaks {bytes_iec(worst.rate * 3600)}/h: full in {full}"
    node = names.pop() if len(names) == 1 < len(nodes) else None
    yield run.finding(
        run.lasting("warning" if is_sure else "info", node),
        text,
        short=f"{part} full in {full}",
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
    " level since the last restart. To a remark (info): memory of steps that take longer than before.",
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
    # Healthy is a tenth below the limit, the room that PyTorch's caching allocator leaves.
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
    excused="peaks. To a remark (info): a level of the first 15 minutes of training, which is what the run"
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
