"""The metrics of simulated runs: how much of a node's resources a run uses, sampled at the requested times.

Samples are computed, not stored. Their times are aligned to the Unix epoch, so that overlapping answers
agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from api_client.emulator.backend import default_step_s, job_metrics
from api_client.emulator.fleet.clock import NS_PER_S, SimClock
from api_client.emulator.fleet.plans import Load, Scenario
from api_client.emulator.fleet.training import StepSchedule, mix, track
from api_client.emulator.formats import moment_at
from api_client.models import (
    InstanceType,
    JobMetrics,
    MetricSample,
    NodeSeries,
    StorageMetrics,
    TrainingJob,
)

FULL = 0.995

BYTES_PER_MIB = 1024**2


def usage(load: Load, pace: StepSchedule, node: int, at_s: float) -> tuple[float, ...]:
    """Return a node's usage ``at_s`` seconds after the run started, as fractions.

    GPU, how far single GPUs stray from that, GPU memory, CPU, memory, disk.
    """
    loading_s = pace.warmup_s * 0.7  # GPUs are idle until then, and ramp up after it
    ramp = min(1.0, max(0.0, at_s - loading_s) / max(1.0, pace.warmup_s - loading_s))
    loaded = 0.6 * min(1.0, at_s / max(1.0, loading_s)) + 0.4 * ramp
    warm, saves, slow = (
        min(1.0, at_s / max(1.0, pace.warmup_s)),
        pace.is_pausing(at_s),
        node in load.node_factor,
    )
    gpu, noise = load.gpu * ramp * load.node_factor.get(node, 1.0), load.gpu_noise
    cpu = load.cpu + 0.35 * (1 - ramp) + 0.1 * saves + 0.12 * slow
    if any(start <= at_s < end for start, end in load.idle):
        gpu, cpu = 0.004, 0.02
    elif pace.has_halted(at_s):
        # Ranks that wait in a collective spin, so a hang looks like full load (NCCL's behavior).
        gpu, cpu, noise = 0.997, 0.02, 0.003
    elif saves:
        gpu = 0.12
    memory = 0.006 + load.gpu_memory * loaded + load.gpu_memory_growth * at_s
    disk = 0.02 + load.disk * warm + load.disk_growth * at_s
    return (
        gpu,
        noise,
        min(FULL, memory),
        min(FULL, cpu),
        min(FULL, 0.03 + load.host_memory * warm),
        min(FULL, disk),
    )


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """The sample times of an answer: wall times, and script seconds since the run started."""

    stamps: list[datetime]
    since_start_s: list[float]

    def until(self, end_s: float | None) -> SampleTimes:
        if end_s is None:
            return self
        count = sum(since < end_s for since in self.since_start_s)
        return SampleTimes(self.stamps[:count], self.since_start_s[:count])

    def samples(
        self, level: Sequence[float], stray: Sequence[float], seed: int, whole: float = 1.0
    ) -> list[MetricSample]:
        """Return samples of those shares of ``whole``, which stray by as much; what is idle does not."""
        drifts = track(seed, self.since_start_s, 20.0)
        digits = 4 if whole < BYTES_PER_MIB else 0
        return [
            MetricSample(
                stamp, round(whole * max(0.0, min(1.0, part + (by * drift if part > 0.01 else 0.0))), digits)
            )
            for stamp, part, by, drift in zip(self.stamps, level, stray, drifts, strict=True)
        ]

    def shares(self, level: Sequence[float], noise: float, seed: int, whole: float) -> list[MetricSample]:
        """Return samples that stray by a share of their own level."""
        return self.samples(level, [noise * part for part in level], seed, whole)

    def storage(self, share: Sequence[float], seed: int, whole: int) -> StorageMetrics:
        used = self.shares(share, 0.001, seed, whole)
        utilization = [
            MetricSample(sample.timestamp, round((sample.value or 0.0) / whole, 5)) for sample in used
        ]
        return StorageMetrics.model_construct(usage_bytes=used, utilization=utilization)


def sample_times(
    sim_clock: SimClock, run_ns: int, start_ns: int, end_ns: int, step_s: int | None
) -> SampleTimes:
    """Build sample times at multiples of the step in ``start_ns <= wall <= end_ns``."""
    span_s = max(0.0, (end_ns - start_ns) / NS_PER_S)
    step = max(step_s or default_step_s(span_s), 1)
    step *= max(1, ceil(span_s / step / 2_000))
    step_ns = step * NS_PER_S
    walls = range(-(-start_ns // step_ns) * step_ns, end_ns + 1, step_ns)
    return SampleTimes(
        stamps=[moment_at(wall) for wall in walls],
        since_start_s=[(sim_clock.to_script(wall) - run_ns) / NS_PER_S for wall in walls],
    )


def node_series(
    scenario: Scenario, machine: InstanceType, node: int, seed: int, times: SampleTimes
) -> NodeSeries:
    seed = mix(seed, node) & 0xFFFF
    load, pace = scenario.load, scenario.curves.pace
    used = [usage(load, pace, node, at_s) for at_s in times.since_start_s]
    gpu, strays, memory, cpu, host, disk = zip(*used, strict=True) if used else ((),) * 6
    gpus = [(rank, str(rank)) for rank in range(machine.gpu_count)]
    gpu_bytes = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    host_bytes = machine.memory_limit_mib * BYTES_PER_MIB
    disk_bytes = machine.gpu_count * 3_500_000_000_000 or 400_000_000_000
    return NodeSeries.model_construct(
        gpu_utilization={name: times.samples(gpu, strays, seed + 31 * rank) for rank, name in gpus},
        gpu_memory_usage_bytes={
            name: times.shares(memory, 0.004, seed + 57 * rank + 7, gpu_bytes) for rank, name in gpus
        },
        cpu_usage=times.shares(cpu, 0.2, seed + 11, machine.millicpu_limit / 1000),
        cpu_memory_usage_bytes=times.shares(host, 0.006, seed + 13, host_bytes),
        ephemeral_storage=times.storage(disk, seed + 17, disk_bytes),
    )


def run_metrics(
    scenario: Scenario,
    machine: InstanceType,
    node_count: int,
    seed: int,
    times: SampleTimes,
    job: TrainingJob,
) -> JobMetrics:
    """Build the answer, without nodes that no longer report."""
    reported = {node: times.until(scenario.load.vanishes.get(node)) for node in range(node_count)}
    nodes = {
        node: node_series(scenario, machine, node, seed, own_times)
        for node, own_times in reported.items()
        if own_times.stamps or not times.stamps
    }
    cache = None
    if scenario.cache_share is not None:
        used = [min(0.98, scenario.cache_share + at * scenario.cache_growth) for at in times.since_start_s]
        # The default training cache is 1 TB (the product's storage page).
        cache = times.storage(used, seed & 0xFFFF, 1_000_000_000_000)
    return job_metrics(job, nodes, cache)
