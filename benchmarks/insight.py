"""How the health checks scale with 64 nodes of 8 GPUs, and memory with the hours of watching a run.

Time is simulated: samples a minute apart and log lines five seconds apart are folded as the feeds do it.
Memory growth has a budget only in a long run (``insight=72``), because all buffers must be full at half time.
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
MIN_BUDGET_HOURS = 48
CHECK_INTERVAL_MIN = 10
FLOOD_MINUTES = 3
"""Only the first minutes of each hour are folded; then all samples in a buffer are new after 17 hours."""


def figures(hours: int = 12) -> Iterator[Figure]:
    """Check a run's health once, watch a run for hours, and fold the samples of a large job."""
    with tempfile.TemporaryDirectory() as folder:
        backend = FleetBackend(
            Database(Path(folder, "state.db")),
            sim_clock=SimClock.starting(EPOCH),
            now=lambda: EPOCH,
            script=LargeWorld(many_nodes=NODES).script(),
        )
        jobs = {job.name: job for job in backend.jobs()}
        times_ms = [check_ms(backend, jobs[name]) for name in (f"titan-{NODES}-nodes", FOUR_NODES)]
        name, other_program = "judging 64 nodes × 8 GPUs (16 times the GPUs)", "4 nodes × 8 GPUs"
        yield Figure(name, *times_ms, other_program, "ms")
        yield watched_memory(backend, jobs[FOUR_NODES], hours)
    yield from large_job_figures(hours)


def check_ms(backend: FleetBackend, job: TrainingJob) -> float:
    """Return the time of a health check of a run with one hour of fine and seven hours of coarse samples."""
    end_s = EPOCH.timestamp()
    fold = health_metrics_fold(job)
    for start_s, until_s, step_s in (
        (end_s - 8 * 3600, end_s - 3900, 7 * 3600 // history_points(job)),
        (end_s - 3900, end_s, STEP_S),
    ):
        fold.fold(backend.metrics(job.id, start_s=start_s, end_s=until_s, step_s=step_s))
    run = RunSnapshot(job, EPOCH, EPOCH, health_metrics=fold.snapshot)
    return median(cpu_ms(partial(health, run)) for _ in range(5))


def watched_memory(backend: FleetBackend, job: TrainingJob, hours: int) -> Figure:
    """Return the memory of the folds of a watched run at the end, compared with half time."""
    metrics, progress = MetricsFold(max_points=LAST_HOUR_POINTS), ProgressFold()
    findings: tuple[HealthFinding, ...] = ()
    sizes, check_count, end_s = [], hours * 60 // CHECK_INTERVAL_MIN, EPOCH.timestamp()
    tracemalloc.start()
    for check in range(check_count):
        elapsed = timedelta(minutes=check * CHECK_INTERVAL_MIN)
        response = backend.metrics(job.id, start_s=end_s - 900, end_s=end_s, step_s=STEP_S)
        for node in response.per_node_metrics:  # the same samples, at later times
            series = node.metrics
            for samples in (*series.gpu_utilization.values(), *series.gpu_memory_usage_bytes.values()):
                samples[:] = [type(sample)(sample.timestamp + elapsed, sample.value) for sample in samples]
        metrics.fold(response)
        now = EPOCH + elapsed
        start_ns, step = int(now.timestamp() * 1e9), check * CHECK_INTERVAL_MIN * 12
        progress.add(
            LogLine(start_ns + n * 5_000_000_000, f"step={step + n} loss={1 + n / 100}", "node-0", None)
            for n in range(CHECK_INTERVAL_MIN * 12)
        )
        run = RunSnapshot(job, now, now, progress=progress.snapshot(), health_metrics=metrics.snapshot)
        findings = health(run, previous=findings)
        if check in (check_count // 2, check_count - 1):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0] / MIB)
    tracemalloc.stop()
    budget = 1.5 if hours >= MIN_BUDGET_HOURS else None
    return Figure(
        f"{hours} h watched: memory at the end",
        sizes[1],
        sizes[0],
        "at half time",
        "MiB",
        at_most=budget,
    )


def large_job_figures(hours: int) -> Iterator[Figure]:
    """Yield memory and time of folding 64 nodes of 8 GPUs, with a sample and a log line per second."""
    metrics = MetricsFold(max_points=MAX_METRIC_POINTS_MANY_NODES + NEW_POINTS)
    progress, process = ProgressFold(), psutil.Process()
    sizes = []
    start = time.perf_counter()
    for hour in range(hours):
        for minute in range(FLOOD_MINUTES):
            minute_start = EPOCH + timedelta(hours=hour, minutes=minute)
            times = [minute_start + timedelta(seconds=second) for second in range(60)]
            metrics.fold(_metrics_response(times), MIN_METRIC_STEP_S)
            progress.add(
                LogLine(
                    int(at.timestamp() * 1e9), f"step={hour * 3600 + second} loss=2.1", f"node-{node}", None
                )
                for second, at in enumerate(times)
                for node in (0, second % NODES)
            )
        if hour in (hours // 2, hours - 1):
            gc.collect()
            sizes.append(process.memory_info().rss / MIB)
    spent_s = time.perf_counter() - start
    name = f"{NODES} × {GPUS} GPUs at a sample a second, {hours} h"
    budget = 1.1 if hours >= MIN_BUDGET_HOURS else None
    yield Figure(f"{name}: resident memory", sizes[1], sizes[0], "at half time", "MiB", at_most=budget)
    samples = hours * FLOOD_MINUTES * 60 * NODES * (2 * GPUS + 2)
    yield Figure(f"{name}: a sample", spent_s / samples * 1e6, unit="µs")


def _metrics_response(times: list[datetime]) -> JobMetrics:
    metric_samples = [MetricSample(at, 0.9 + n % 7 / 100) for n, at in enumerate(times)]
    gpus = {str(gpu): metric_samples for gpu in range(GPUS)}
    series = NodeSeries(
        gpu_utilization=gpus,
        gpu_memory_usage_bytes=gpus,
        cpu_usage=metric_samples,
        cpu_memory_usage_bytes=metric_samples,
    )
    return JobMetrics(
        per_node_metrics=[NodeMetrics(node_id=f"node-{node}", metrics=series) for node in range(NODES)]
    )
