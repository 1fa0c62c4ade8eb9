"""How judging a run scales: 64 nodes of 8 GPUs, and hours watched.

Time is simulated: samples a minute apart and log lines five seconds apart, folded as the feeds do it. Growth
has budgets only if the hours are many (``insight=72``): at half of them every buffer must be full.
"""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

import psutil
from harness import Figure, cpu_ms
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
from tui.readers.health_metrics import LAST_HOUR_POINTS, health_metrics_fold, history_points

EPOCH = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
NODES, GPUS = 64, 8
FOUR_NODES = "llama-70b-sft-v3"
STEP_S = 60
MIB = 2**20
SETTLED_HOURS = 48
LOOK_MIN = 10
FLOOD_MINUTES = 3
"""Of each hour only the first minutes are folded: after seventeen hours every buffer has turned over."""


def figures(hours: int = 12) -> Iterator[Figure]:
    """Judge once, watch for hours, and fold as fast as a large job can send."""
    with tempfile.TemporaryDirectory() as folder:
        backend = FleetBackend(
            Database(Path(folder, "state.db")),
            sim_clock=SimClock.starting(EPOCH),
            now=lambda: EPOCH,
            script=LargeWorld(many_nodes=NODES).script(),
        )
        jobs = {job.name: job for job in backend.jobs()}
        times_ms = [judging_ms(backend, jobs[name]) for name in (f"titan-{NODES}-nodes", FOUR_NODES)]
        name, against = "judging 64 nodes × 8 GPUs (16 times the GPUs)", "4 nodes × 8 GPUs"
        yield Figure(name, *times_ms, against, "ms")
        yield watched(backend, jobs[FOUR_NODES], hours)
    yield from flooded(hours)


def judging_ms(backend: FleetBackend, job: TrainingJob) -> float:
    """Return the time of one look at a run with an hour of fine and seven of coarse samples."""
    end_s = EPOCH.timestamp()
    fold = health_metrics_fold(job)
    for start_s, until_s, step_s in (
        (end_s - 8 * 3600, end_s - 3900, 7 * 3600 // history_points(job)),
        (end_s - 3900, end_s, STEP_S),
    ):
        fold.fold(backend.metrics(job.id, start_s=start_s, end_s=until_s, step_s=step_s))
    run = RunSnapshot(job, EPOCH, EPOCH, health_metrics=fold.snapshot)
    return median(cpu_ms(partial(health, run)) for _ in range(5))


def watched(backend: FleetBackend, job: TrainingJob, hours: int) -> Figure:
    """Memory at half time and at the end, of the folds of one run that is watched."""
    metrics, progress = MetricsFold(max_points=LAST_HOUR_POINTS), ProgressFold()
    found: tuple[HealthFinding, ...] = ()
    sizes, looks, end_s = [], hours * 60 // LOOK_MIN, EPOCH.timestamp()
    tracemalloc.start()
    for look in range(looks):
        passed = timedelta(minutes=look * LOOK_MIN)
        answer = backend.metrics(job.id, start_s=end_s - 900, end_s=end_s, step_s=STEP_S)
        for node in answer.per_node_metrics:  # the same samples, moved on in time
            series = node.metrics
            for samples in (*series.gpu_utilization.values(), *series.gpu_memory_usage_bytes.values()):
                samples[:] = [type(sample)(sample.timestamp + passed, sample.value) for sample in samples]
        metrics.fold(answer)
        now = EPOCH + passed
        start_ns, step = int(now.timestamp() * 1e9), look * LOOK_MIN * 12
        progress.add(
            LogLine(start_ns + n * 5_000_000_000, f"step={step + n} loss={1 + n / 100}", "node-0", None)
            for n in range(LOOK_MIN * 12)
        )
        run = RunSnapshot(job, now, now, progress=progress.snapshot(), health_metrics=metrics.snapshot)
        found = health(run, previous=found)
        if look in (looks // 2, looks - 1):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0] / MIB)
    tracemalloc.stop()
    most = 1.5 if hours >= SETTLED_HOURS else None
    return Figure(
        f"{hours} h watched: memory at the end", sizes[1], sizes[0], "at half time", "MiB", at_most=most
    )


def flooded(hours: int) -> Iterator[Figure]:
    """Memory of a process that folds 64 nodes of 8 GPUs at one sample and one line a second."""
    metrics = MetricsFold(max_points=MAX_METRIC_POINTS_MANY_NODES + NEW_POINTS)
    progress, process = ProgressFold(), psutil.Process()
    sizes = []
    start = time.perf_counter()
    for hour in range(hours):
        for minute in range(FLOOD_MINUTES):
            begin = EPOCH + timedelta(hours=hour, minutes=minute)
            times = [begin + timedelta(seconds=second) for second in range(60)]
            metrics.fold(_answer(times), MIN_METRIC_STEP_S)
            progress.add(
                LogLine(int(at.timestamp() * 1e9), f"step={hour * 3600 + n} loss=2.1", f"node-{node}", None)
                for n, at in enumerate(times)
                for node in (0, n % NODES)
            )
        if hour in (hours // 2, hours - 1):
            gc.collect()
            sizes.append(process.memory_info().rss / MIB)
    spent_s = time.perf_counter() - start
    name = f"{NODES} × {GPUS} GPUs at a sample a second, {hours} h"
    most = 1.1 if hours >= SETTLED_HOURS else None
    yield Figure(f"{name}: resident memory", sizes[1], sizes[0], "at half time", "MiB", at_most=most)
    samples = hours * FLOOD_MINUTES * 60 * NODES * (2 * GPUS + 2)
    yield Figure(f"{name}: a sample", spent_s / samples * 1e6, unit="µs")


def _answer(times: list[datetime]) -> JobMetrics:
    shared = [MetricSample(at, 0.9 + n % 7 / 100) for n, at in enumerate(times)]
    gpus = {str(gpu): shared for gpu in range(GPUS)}
    series = NodeSeries(
        gpu_utilization=gpus, gpu_memory_usage_bytes=gpus, cpu_usage=shared, cpu_memory_usage_bytes=shared
    )
    return JobMetrics(
        per_node_metrics=[NodeMetrics(node_id=f"node-{node}", metrics=series) for node in range(NODES)]
    )
