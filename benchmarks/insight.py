"""How judging a run scales: 64 nodes of 8 GPUs, and 72 hours watched. Prints ratios and sizes.

    python benchmarks/insight.py [HOURS]

Time is simulated: samples a minute apart and log lines five seconds apart, folded as the feeds do it.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psutil
from harness import Report
from large_world import LargeWorld

from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.fleet.clock import SimClock
from api_client.emulator.store.database import Database
from api_client.models import JobMetrics, MetricSample, NodeMetrics, NodeSeries, TrainingJob
from api_client.models.logs import LogLine
from tui.analysis.health.judge import health
from tui.analysis.node_metrics import MetricsFold
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.run import MAX_METRIC_POINTS_MANY_NODES, MIN_METRIC_STEP_S, NEW_POINTS
from tui.readers.health_metrics import FINE_POINTS, health_metrics_fold, history_points

EPOCH = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
NODES = 64
ROUNDS = 5
GPUS = 8
FLOOD_MINUTES = 3
STEP_S = 60
MIB = 2**20
WATCHED_GROWTH, FLOOD_GROWTH = 1.5, 1.1
SETTLED_HOURS = 48
"""At half of so many hours every buffer is full: what grows from then on grows for ever."""
LOOK_MIN = 10
"""Minutes between two looks at the run that is watched."""


class Fleet:
    """The demo world with one run on 64 nodes, on a clock that this script moves."""

    def __init__(self, folder: Path) -> None:
        self.now = EPOCH
        self.backend = FleetBackend(
            Database(folder / "state.db"),
            sim_clock=SimClock.starting(EPOCH),
            now=lambda: self.now,
            script=LargeWorld(many_nodes=NODES).script(),
        )

    def job(self, name: str) -> TrainingJob:
        """The job of that name."""
        return next(job for job in self.backend.jobs() if job.name == name)


def median_ms(work: Callable[[], object]) -> float:
    """The median time of a few rounds in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return sorted(times)[ROUNDS // 2]


def judge(report: Report, fleet: Fleet) -> None:
    """One look at an hour of the large run, beside one at a run of four nodes."""
    took = {}
    for name, nodes in ((f"titan-{NODES}-nodes", NODES), ("llama-70b-sft-v3", 4)):
        job, end_s = fleet.job(name), fleet.now.timestamp()
        answer = fleet.backend.metrics(job.id, start_s=end_s - 3900, end_s=end_s, step_s=STEP_S)
        earlier = fleet.backend.metrics(
            job.id, start_s=end_s - 8 * 3600, end_s=end_s - 3900, step_s=7 * 3600 // history_points(job)
        )
        fold = health_metrics_fold(job)
        fold.fold(earlier)
        fold.fold(answer)
        run = RunSnapshot(job, fleet.now, fleet.now, health_metrics=fold.snapshot)
        newest = fleet.backend.metrics(job.id, start_s=end_s - 180, end_s=end_s, step_s=STEP_S)
        took[nodes] = median_ms(partial(health, run))
        more = median_ms(partial(fold.fold, newest))
        print(f"{nodes:3} nodes: health {took[nodes]:7.1f} ms   folding an increment {more:7.1f} ms")
    report.compare(
        "judging 64 nodes × 8 GPUs (16 times the GPUs)",
        took[NODES],
        took[4],
        against="4 nodes × 8 GPUs",
        unit="ms",
    )


def watch(report: Report, fleet: Fleet, hours: int) -> None:
    """Memory after a quarter of the time and at the end, of the folds of one run that is watched on."""
    job = fleet.job("llama-70b-sft-v3")
    metrics, progress = MetricsFold(max_points=FINE_POINTS), ProgressFold()
    found: tuple[HealthFinding, ...] = ()
    tracemalloc.start()
    sizes = []
    looks = hours * 60 // LOOK_MIN
    for look in range(looks):
        minute = look * LOOK_MIN
        now = EPOCH + timedelta(minutes=minute)
        end_s = EPOCH.timestamp()
        answer = fleet.backend.metrics(job.id, start_s=end_s - 900, end_s=end_s, step_s=STEP_S)
        for node in answer.per_node_metrics:  # the same samples, moved on in time
            for samples in (
                *node.metrics.gpu_utilization.values(),
                *node.metrics.gpu_memory_usage_bytes.values(),
            ):
                for place, sample in enumerate(samples):
                    samples[place] = type(sample)(sample.timestamp + timedelta(minutes=minute), sample.value)
        metrics.fold(answer)
        start_ns = int(now.timestamp() * 1e9)
        progress.add(
            LogLine(
                start_ns + n * 5_000_000_000, f"step={minute * 12 + n} loss={1 + n / 100}", "node-0", None
            )
            for n in range(LOOK_MIN * 12)
        )
        run = RunSnapshot(job, now, now, progress=progress.snapshot(), health_metrics=metrics.snapshot)
        found = health(run, previous=found)
        if look in (looks // 2, looks - 1):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    report.compare(
        f"{hours} h watched: memory at the end",
        sizes[1] / MIB,
        sizes[0] / MIB,
        against="at half time",
        unit="MiB",
        at_most=WATCHED_GROWTH if hours >= SETTLED_HOURS else None,
    )


def flood(report: Report, hours: int) -> None:
    """Memory of a process that folds 64 nodes of 8 GPUs at one sample and one line a second, hour by hour.

    Of each hour the first ``FLOOD_MINUTES`` are folded: after seventeen every buffer has turned over.
    """
    metrics = MetricsFold(max_points=MAX_METRIC_POINTS_MANY_NODES + NEW_POINTS)
    progress, process = ProgressFold(), psutil.Process()
    sizes: dict[int, float] = {}
    start = time.perf_counter()
    for hour in range(hours):
        begin = EPOCH + timedelta(hours=hour)
        for minute in range(FLOOD_MINUTES):
            rows = [begin + timedelta(minutes=minute, seconds=second) for second in range(60)]
            metrics.fold(_answer(rows), MIN_METRIC_STEP_S)
            progress.add(
                LogLine(
                    int(at.timestamp() * 1e9),
                    f"step={hour * 3600 + n} loss={2 + n / 100}",
                    f"node-{node}",
                    None,
                )
                for n, at in enumerate(rows)
                for node in (0, n % NODES)
            )
        if hour in (hours // 3, hours // 2, hours - 1):
            gc.collect()
            sizes[hour + 1] = process.memory_info().rss / MIB
    spent_s = time.perf_counter() - start
    samples = hours * FLOOD_MINUTES * 60 * NODES * (2 * GPUS + 2)
    name = f"{NODES} × {GPUS} GPUs at a sample a second, {hours} h"
    ended, half = sizes[hours], sizes[hours // 2 + 1]
    report.compare(
        f"{name}: resident memory",
        ended,
        half,
        against="at half time",
        unit="MiB",
        at_most=FLOOD_GROWTH if hours >= SETTLED_HOURS else None,
    )
    report.figure(f"{name}: a sample", spent_s / samples * 1e6, unit="µs")


def _answer(times: list[datetime]) -> JobMetrics:
    shared = [MetricSample(at, 0.9 + n % 7 / 100) for n, at in enumerate(times)]
    gpus = {str(gpu): shared for gpu in range(GPUS)}
    series = NodeSeries(
        gpu_utilization=gpus, gpu_memory_usage_bytes=gpus, cpu_usage=shared, cpu_memory_usage_bytes=shared
    )
    return JobMetrics(
        per_node_metrics=[NodeMetrics(node_id=f"node-{node}", metrics=series) for node in range(NODES)]
    )


def main() -> None:
    """All three."""
    report = Report("insight")
    hours = int(sys.argv[1]) if len(sys.argv) > 1 else 72
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder))
        judge(report, fleet)
        watch(report, fleet, hours)
    flood(report, hours)
    report.close()


if __name__ == "__main__":
    main()
