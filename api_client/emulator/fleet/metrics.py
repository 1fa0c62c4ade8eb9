"""The metrics of scripted runs: how much of a node's resources a run uses, sampled at the requested times.

Samples are computed, not stored. Their times are aligned to the epoch, so that overlapping answers agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from types import MappingProxyType

from api_client.emulator.fleet.clock import NS_PER_S, SimClock, to_datetime
from api_client.emulator.fleet.training import StepSchedule, mix, track
from api_client.models import (
    InstanceType,
    JobMetrics,
    MetricSample,
    NodeMetrics,
    NodeSeries,
    StorageMetrics,
    TrainingJob,
)

WEIGHT_LOADING_SHARE = 0.7
"""Share of the warm-up during which GPUs are idle (loading weights); after it they ramp up."""
PAUSED_UTILIZATION = 0.12
HUNG_UTILIZATION = 0.997
"""Ranks that wait in a collective spin, so a hang looks like full load (NCCL's behavior)."""
IDLE_UTILIZATION = 0.004
FULL = 0.995


@dataclass(frozen=True, slots=True)
class Load:
    """Usage as fractions of a node's resources, as functions of the seconds since the run started.

    ``node_factor`` scales the GPU utilization of single nodes. ``idle_after_s`` is when the GPUs go idle.
    Growth values are fractions per second (leaks, filling disks). Nodes in ``vanishes`` have no samples
    after that many seconds. GPUs are idle during each (start, end) pair of ``breaks``.
    """

    pace: StepSchedule
    gpu: float = 0.965
    gpu_noise: float = 0.022
    gpu_memory: float = 0.84
    gpu_memory_growth: float = 0.0
    cpu: float = 0.18
    host_memory: float = 0.31
    host_memory_growth: float = 0.0
    disk: float = 0.14
    disk_growth: float = 0.0
    node_factor: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    idle_after_s: float | None = None
    vanishes: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    breaks: tuple[tuple[float, float], ...] = ()

    def _ramp(self, since_start_s: float) -> float:
        """Return 0 while weights load, then rise to 1 by the end of the warm-up."""
        loading_s = self.pace.warmup_s * WEIGHT_LOADING_SHARE
        if since_start_s <= loading_s:
            return 0.0
        return min(1.0, (since_start_s - loading_s) / max(1.0, self.pace.warmup_s - loading_s))

    def gpu_utilization(self, node: int, since_start_s: float) -> float:
        """Return the mean over the node's GPUs, 0 to 1."""
        if self.idle_after_s is not None and since_start_s >= self.idle_after_s:
            return IDLE_UTILIZATION
        if any(start <= since_start_s < end for start, end in self.breaks):
            return IDLE_UTILIZATION
        if self.pace.has_halted(since_start_s):
            return HUNG_UTILIZATION
        if self.pace.is_pausing(since_start_s):
            return PAUSED_UTILIZATION
        return self.gpu * self._ramp(since_start_s) * self.node_factor.get(node, 1.0)

    def gpu_noise_at(self, since_start_s: float) -> float:
        """Return the deviation of single GPUs from the mean."""
        return 0.003 if self.pace.has_halted(since_start_s) else self.gpu_noise

    def gpu_memory_share(self, since_start_s: float) -> float:
        loading_s = max(1.0, self.pace.warmup_s * WEIGHT_LOADING_SHARE)
        loaded = min(1.0, since_start_s / loading_s) * 0.6 + 0.4 * self._ramp(since_start_s)
        return min(FULL, 0.006 + self.gpu_memory * loaded + self.gpu_memory_growth * since_start_s)

    def cpu_share(self, node: int, since_start_s: float) -> float:
        if self.pace.has_halted(since_start_s) or (
            self.idle_after_s is not None and since_start_s >= self.idle_after_s
        ):
            return 0.02
        loading = 0.35 * (1 - self._ramp(since_start_s))
        saving = 0.1 if self.pace.is_pausing(since_start_s) else 0.0
        slow = 0.12 if node in self.node_factor else 0.0
        return min(FULL, self.cpu + loading + saving + slow)

    def host_memory_share(self, since_start_s: float) -> float:
        filled = min(1.0, since_start_s / max(1.0, self.pace.warmup_s))
        return min(FULL, 0.03 + self.host_memory * filled + self.host_memory_growth * since_start_s)

    def disk_share(self, since_start_s: float) -> float:
        filled = min(1.0, since_start_s / max(1.0, self.pace.warmup_s))
        return min(FULL, 0.02 + self.disk * filled + self.disk_growth * since_start_s)


DEFAULT_POINTS = 250
MAX_POINTS = 2_000
"""Maximum number of points per series; a step that would give more is made coarser."""
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
NOISE_CELL_S = 20.0
BYTES_PER_MIB = 1024**2
DISK_BYTES_PER_GPU = 3_500_000_000_000
DISK_BYTES_WITHOUT_GPU = 400_000_000_000
CACHE_BYTES = 1_000_000_000_000
"""The default training cache is 1 TB (the product's storage page)."""
GPU_MEMORY_NOISE = 0.004
_PRECISION = 10_000


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """The sample times of an answer: wall times, and script seconds since the run started."""

    stamps: list[datetime]
    since_start_s: list[float]


def default_step_s(span_s: float) -> int:
    """Return the round step, in seconds, that gives about 250 points over a time range."""
    wanted = span_s / DEFAULT_POINTS
    return next((step for step in STEPS_S if step >= wanted), STEPS_S[-1])


def grid(sim_clock: SimClock, run_ns: int, start_ns: int, end_ns: int, step_s: int | None) -> SampleTimes:
    """Build sample times at multiples of the step in ``start_ns <= wall <= end_ns``.

    Steps are aligned to the epoch, so that overlapping answers have the same sample times.
    """
    span_s = max(0.0, (end_ns - start_ns) / NS_PER_S)
    step = max(step_s or default_step_s(span_s), 1)
    step *= max(1, ceil(span_s / step / MAX_POINTS))
    step_ns = step * NS_PER_S
    walls = range(-(-start_ns // step_ns) * step_ns, end_ns + 1, step_ns)
    return SampleTimes(
        stamps=[to_datetime(wall) for wall in walls],
        since_start_s=[(sim_clock.to_script(wall) - run_ns) / NS_PER_S for wall in walls],
    )


def node_series(load: Load, machine: InstanceType, node: int, seed: int, times: SampleTimes) -> NodeSeries:
    node_seed = mix(seed, node) & 0xFFFF
    since = times.since_start_s
    gpus = [str(number) for number in range(machine.gpu_count)]
    gpu_bytes = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    busy = [load.gpu_utilization(node, at) for at in since]
    noise = [load.gpu_noise_at(at) for at in since]
    full = [load.gpu_memory_share(at) for at in since]
    cores = machine.millicpu_limit / 1000
    host_bytes = machine.memory_limit_mib * BYTES_PER_MIB
    return NodeSeries.model_construct(
        gpu_utilization={
            gpu: _fractions(times, busy, noise, node_seed + 31 * rank) for rank, gpu in enumerate(gpus)
        },
        gpu_memory_usage_bytes={
            gpu: _amounts(times, full, node_seed + 57 * rank + 7, gpu_bytes, GPU_MEMORY_NOISE)
            for rank, gpu in enumerate(gpus)
        },
        cpu_usage=_cores(times, lambda at: load.cpu_share(node, at), node_seed + 11, cores),
        cpu_memory_usage_bytes=_amounts(
            times, [load.host_memory_share(at) for at in since], node_seed + 13, host_bytes, 0.006
        ),
        ephemeral_storage=_storage(
            times, [load.disk_share(at) for at in since], node_seed + 17, _disk_bytes(machine)
        ),
    )


def job_metrics(
    load: Load,
    machine: InstanceType,
    node_count: int,
    seed: int,
    times: SampleTimes,
    *,
    cache_share: float | None,
    cache_growth: float,
    job: TrainingJob,
) -> JobMetrics:
    """Build the whole answer; the top-level series are those of node-0 (API facts, 2.2)."""
    nodes = [
        NodeMetrics.model_construct(
            node_id=f"node-{node}", metrics=node_series(load, machine, node, seed, told)
        )
        for node in range(node_count)
        if (told := _reported_times(load, node, times)).stamps or not times.stamps
    ]
    leader = nodes[0].metrics if nodes else NodeSeries()
    cache = None
    if cache_share is not None:
        growth = [min(0.98, cache_share + at * cache_growth) for at in times.since_start_s]
        cache = _storage(times, growth, seed & 0xFFFF, CACHE_BYTES)
    return JobMetrics.model_construct(
        gpu_utilization=leader.gpu_utilization,
        gpu_memory_usage_bytes=leader.gpu_memory_usage_bytes,
        cpu_usage=leader.cpu_usage,
        cpu_memory_usage_bytes=leader.cpu_memory_usage_bytes,
        ephemeral_storage=leader.ephemeral_storage,
        cache=cache,
        training_job=job,
        per_node_metrics=nodes,
    )


def _reported_times(load: Load, node: int, times: SampleTimes) -> SampleTimes:
    """Return a node's sample times: all of them unless the node vanishes."""
    until_s = load.vanishes.get(node)
    if until_s is None:
        return times
    count = sum(since < until_s for since in times.since_start_s)
    return SampleTimes(times.stamps[:count], times.since_start_s[:count])


def _disk_bytes(machine: InstanceType) -> int:
    return machine.gpu_count * DISK_BYTES_PER_GPU or DISK_BYTES_WITHOUT_GPU


def _fractions(
    times: SampleTimes, level: Sequence[float], noise: Sequence[float], seed: int
) -> list[MetricSample]:
    """Return utilizations clamped to 0–1; an idle GPU gets no noise."""
    return [
        MetricSample(
            stamp,
            int(max(0.0, min(1.0, mean + stray * drift if mean > 0.01 else mean)) * _PRECISION) / _PRECISION,
        )
        for stamp, mean, stray, drift in zip(
            times.stamps, level, noise, track(seed, times.since_start_s, NOISE_CELL_S), strict=True
        )
    ]


def _amounts(
    times: SampleTimes, share: Sequence[float], seed: int, whole_bytes: int, noise: float
) -> list[MetricSample]:
    """Return bytes in use, never more than ``whole_bytes``."""
    drifts = track(seed, times.since_start_s, 3 * NOISE_CELL_S)
    return [
        MetricSample(stamp, float(int(whole_bytes * max(0.0, min(1.0, part * (1 + noise * drift))))))
        for stamp, part, drift in zip(times.stamps, share, drifts, strict=True)
    ]


def _cores(
    times: SampleTimes, share: Callable[[float], float], seed: int, cores: float
) -> list[MetricSample]:
    drifts = track(seed, times.since_start_s, NOISE_CELL_S)
    return [
        MetricSample(stamp, round(cores * max(0.0, min(1.0, share(at) * (1 + 0.2 * drift))), 3))
        for stamp, at, drift in zip(times.stamps, times.since_start_s, drifts, strict=True)
    ]


def _storage(times: SampleTimes, share: Sequence[float], seed: int, whole_bytes: int) -> StorageMetrics:
    used = _amounts(times, share, seed, whole_bytes, 0.001)
    return StorageMetrics.model_construct(
        usage_bytes=used,
        utilization=[
            MetricSample(sample.timestamp, round((sample.value or 0.0) / whole_bytes, 5)) for sample in used
        ],
    )
