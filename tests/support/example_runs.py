"""The small runs that checks come with, watched from their beginning."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from operator import itemgetter

from api_client.models import (
    Checkpoint,
    InstanceType,
    JobMetrics,
    MetricSample,
    NodeMetrics,
    NodeSeries,
    QueueContext,
    QueueEvent,
    StorageMetrics,
    TrainingJob,
)
from api_client.models.logs import LogLine
from support.watched_run import WatchedRun
from tui.analysis.health.check import Example, Level
from tui.analysis.health.registry import Thresholds
from tui.analysis.run.finding import HealthFinding

START_S = 1_770_000_000
GIB = 2**30
MACHINE = InstanceType(
    id="m",
    gpu_type="H100",
    gpu_count=2,
    gpu_memory_limit_mib=80 * 1024,
    memory_limit_mib=400 * 1024,
    millicpu_limit=64_000,
)


def moment(second: float) -> datetime:
    return datetime.fromtimestamp(START_S + second, UTC)


def watch_example(example: Example, look_s: int = 300) -> Iterator[tuple[HealthFinding, ...]]:
    """Yield what is found at each look, the last of them at the end of the run."""
    job = TrainingJob(
        id="j",
        current_status="TRAINING_JOB_PENDING" if example.waits else "TRAINING_JOB_RUNNING",
        instance_type=MACHINE,
        created_at=moment(0),
        node_count=len(example.gpu),
    )
    known = {each.name for each in fields(Thresholds)}
    assert {name for name, _ in example.limits} <= known
    rules = Thresholds(**dict(example.limits))
    watched = WatchedRun(job, rules)
    lines = sorted(itertools.chain(log_lines(example), example.others))
    begin, read = -1, 0
    for second in range(0, example.minutes * 60 + 1, look_s):
        arrived = bisect_right(lines, second, key=itemgetter(0))
        new = [LogLine(round((START_S + at) * 1e9), text, "node-0", None) for at, text in lines[read:arrived]]
        answer = metrics_of(example, range(begin // 60 * 60 + 60, second + 1, 60))
        begin, read = second, arrived
        begun = {"training_job_id": "j", "status": "TRAINING_JOB_RUNNING"}
        starts = [0.0, *(at for at in example.restarts_s if at <= second)]
        events = [QueueEvent.model_validate({**begun, "created": moment(at)}) for at in starts]
        saved = example.saved_s
        yield watched.look(
            moment(second),
            new,
            answer,
            checkpoints=None if saved is None else tuple(checkpoint(at) for at in saved if at <= second),
            queue=None if example.waits else QueueContext(target_job_id="j", events=events),
        )


def checkpoint(at: float) -> Checkpoint:
    return Checkpoint(checkpoint_id="save", created_at=moment(at), training_job_id="j")


def log_lines(example: Example) -> Iterator[tuple[float, str]]:
    at = 0.0
    for step in itertools.count(1):
        at += example.step_s(at) if callable(example.step_s) else example.step_s
        if at > min(example.stops_s, example.minutes * 60):
            return
        yield at, example.line.format(step=step, loss=example.loss(step))


def metrics_of(example: Example, seconds: range) -> JobMetrics:
    def samples(level: Level, scale: float = 1.0) -> list[MetricSample]:
        values = ((at, level(at) if callable(level) else level) for at in seconds)
        return [MetricSample(moment(at), value * scale) for at, value in values if value is not None]

    nodes = []
    for number, gpu in enumerate(example.gpu):
        is_there = samples(gpu)
        gpu_memory = samples(example.gpu_memory_gib, GIB) if is_there else []
        series = NodeSeries(
            gpu_utilization={"0": is_there, "1": is_there},
            gpu_memory_usage_bytes=dict.fromkeys("01", gpu_memory),
            cpu_usage=samples(example.cpu) if is_there else [],
            cpu_memory_usage_bytes=samples(example.memory_gib, GIB) if is_there else [],
            ephemeral_storage=StorageMetrics(
                usage_bytes=[], utilization=samples(example.disk) if is_there else []
            ),
        )
        nodes.append(NodeMetrics(node_id=f"node-{number}", metrics=series))
    cache = StorageMetrics(usage_bytes=[], utilization=samples(example.cache)) if example.cache else None
    return JobMetrics(per_node_metrics=nodes, cache=cache)
