"""Fixed data for screens, as of one o'clock, and stub feeds that publish it once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from api_client.models import (
    Checkpoint,
    JobMetrics,
    MetricSample,
    NodeMetrics,
    NodeSeries,
    StorageMetrics,
    TrainingJob,
    TrainingProject,
)
from api_client.models.logs import LogGap, LogLine
from tui.analysis.fleet.snapshot import FleetFold, FleetSnapshot, JobPreview
from tui.analysis.health.checkpoint_faults import checkpoint_faults
from tui.analysis.health.judge import judged
from tui.analysis.health.registry import KINDS
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import KeptLosses
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.run_log import LogPart

ONE_O_CLOCK = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)


def job(job_id: str, status: str = "RUNNING", **fields: Any) -> TrainingJob:
    created = ONE_O_CLOCK - timedelta(hours=fields.pop("hours_ago", 1.0))
    took = fields.pop("took_hours", 0.0)
    project = fields.pop("project", "llama-sft")
    gpu_type, gpu_count = fields.pop("gpus", ("H100", 8))
    return TrainingJob.model_validate(
        {
            "id": job_id,
            "name": fields.pop("name", job_id),
            "current_status": f"TRAINING_JOB_{status}",
            "created_at": created,
            "updated_at": created + timedelta(hours=took),
            "training_project_id": f"p-{project}",
            "training_project": {"id": f"p-{project}", "name": project},
            "instance_type": {
                "id": f"{gpu_type}:{gpu_count}",
                "name": f"{gpu_type}x{gpu_count}",
                "gpu_type": gpu_type,
                "gpu_count": gpu_count,
                "gpu_memory_limit_mib": 81920,
            },
            "user": {"email": "ada@example.com"},
            "node_count": 4,
            **fields,
        }
    )


JOBS = (
    job("llama70", name="llama-70b-sft-v3", hours_ago=6.2),
    job("grpo7", name="qwen3-grpo-7", project="qwen3-grpo", gpus=("H200", 8), node_count=2, hours_ago=3),
    job("whisper", name="whisper-ft", project="whisper", gpus=("A10G", 1), node_count=1, hours_ago=0.4),
    job("ablate", "PENDING", name="llama-8b-ablate", node_count=1, hours_ago=0.25),
    job("boot", "DEPLOYING", name="llama-8b-long", node_count=1, hours_ago=0.05),
    job("sftv2", "COMPLETED", name="llama-70b-sft-v2", hours_ago=30, took_hours=9.2),
    job(
        "grpo6",
        "FAILED",
        name="qwen3-grpo-6",
        project="qwen3-grpo",
        gpus=("H200", 8),
        node_count=2,
        hours_ago=50,
        took_hours=0.7,
        error_message="node-1: exit code 1: torch.OutOfMemoryError: CUDA out of memory",
    ),
    job(
        "spot",
        "PREEMPTED",
        name="eval-sweep",
        project="evals",
        availability_model="SPOT",
        hours_ago=20,
        took_hours=2,
    ),
    job("novel", "HIBERNATING", name="from-the-future", project="evals", hours_ago=70, took_hours=1),
    job(
        "broken",
        "DEPLOY_FAILED",
        name="flux-lora-2",
        project="flux-lora",
        error_message="image not found",
        hours_ago=80,
    ),
)
PROJECTS = tuple(
    TrainingProject(id=f"p-{name}", name=name)
    for name in ("llama-sft", "qwen3-grpo", "whisper", "evals", "flux")
)
JOB_PREVIEWS = {
    "llama70": JobPreview(
        ProgressSnapshot(step=4120, total_steps=9000, eta_s=25_840.0, loss=0.9132),
        0.97,
    ),
    "grpo7": JobPreview(
        ProgressSnapshot(step=880, total_steps=2000),
        1.0,
        (HealthFinding(KINDS["stalled"], "critical", "no step for 9m"),),
    ),
    "whisper": JobPreview(ProgressSnapshot(step=310, total_steps=600, eta_s=1330.0), 0.6),
}


def fleet(jobs: tuple[TrainingJob, ...] = JOBS) -> FleetSnapshot:
    return FleetFold().fold(PROJECTS, jobs, JOB_PREVIEWS, ONE_O_CLOCK)


class StubFleetFeed:
    """Publishes one snapshot, then waits to be cancelled."""

    def __init__(self, snapshot: FleetSnapshot | None, publish: Callable[[FleetSnapshot], object]) -> None:
        self.snapshot, self.publish = snapshot, publish

    async def run(self) -> None:
        if self.snapshot is not None:
            self.publish(self.snapshot)
        await asyncio.Event().wait()

    def refresh(self) -> None:
        """There is no other snapshot."""


def series(level: float, dip: float = 0.0) -> list[MetricSample]:
    """An hour at one sample a minute: a steady level with a dip every quarter of an hour."""
    return [
        MetricSample(ONE_O_CLOCK - timedelta(minutes=age), level - (dip if age % 15 == 5 else 0.0))
        for age in range(60, -1, -1)
    ]


def job_metrics(levels: tuple[float, ...] = (0.97, 0.96, 0.61, 0.97), gpus: int = 8) -> JobMetrics:
    nodes = [
        NodeMetrics(
            node_id=f"node-{rank}",
            metrics=NodeSeries(
                gpu_utilization={str(gpu): series(level, 0.5) for gpu in range(gpus)},
                gpu_memory_usage_bytes={str(gpu): series(64e9 + gpu * 1e9) for gpu in range(gpus)},
                cpu_usage=series(30.0 + rank),
                cpu_memory_usage_bytes=series(6e11),
                ephemeral_storage=StorageMetrics(usage_bytes=series(2e12), utilization=series(0.4)),
            ),
        )
        for rank, level in enumerate(levels)
    ]
    return JobMetrics(per_node_metrics=nodes)


def log_lines(count: int = 40) -> tuple[LogLine, ...]:
    """A line every five seconds up to one o'clock, the nodes taking turns."""
    start_ns = int(ONE_O_CLOCK.timestamp() * 1e9)
    lines = []
    for number in range(count):
        stamp = start_ns - (count - number) * 5_000_000_000
        match number % 4:
            case 0:
                message = f"{{'loss': {2.0 - number / 40:.4f}, 'grad_norm': 0.71, 'learning_rate': 1.9e-05}}"
            case 1:
                message = f" 46%|####5     | {4120 - count + number}/9000 [6:10:38<7:17:27,  5.39s/it]"
            case _:
                message = f"all_gather 2.1 GB in {40 + number} ms"
        replica = "node-0" if number % 4 < 2 else f"node-{number % 4 - 1}"
        lines.append(LogLine(stamp, message, replica, "WARNING" if number == 30 else None))
    return tuple(lines)


EARLIER_STEPS = tuple(
    LogLine(
        int((ONE_O_CLOCK - timedelta(seconds=200 + 60 * minute)).timestamp() * 1e9),
        f" 41%|####1     | {4080 - 12 * minute}/9000 [5:10:00<8:17:27,  5.00s/it]",
        "node-0",
        None,
    )
    for minute in range(56, 0, -1)
)
"""Nodes are compared after half an hour of steps."""

CHECKPOINTS = tuple(
    Checkpoint(
        checkpoint_id=f"checkpoint-{step}",
        checkpoint_type="lora",
        base_model="meta-llama/Llama-3.1-70B",
        lora_adapter_config={"r": 16},
        size_bytes=1_340_000_000,
        created_at=ONE_O_CLOCK - timedelta(minutes=(4120 - step) / 10),
        sync_status="SYNCING" if step == 4000 else "COMPLETE",
        training_job_id="llama70",
    )
    for step in range(1000, 4001, 1000)
)


@cache
def usual_progress() -> ProgressSnapshot:
    fold = ProgressFold()
    fold.add([*EARLIER_STEPS, *log_lines()])
    return fold.snapshot()


@cache
def usual_metrics() -> MetricsSnapshot:
    return MetricsFold().fold(job_metrics())


def run(subject: TrainingJob = JOBS[0], metrics: JobMetrics | None = None, **changes: Any) -> RunSnapshot:
    folded = usual_metrics() if metrics is None else MetricsFold().fold(metrics)
    fields: dict[str, Any] = {
        "progress": usual_progress(),
        "history_known": True,
        "log_read": True,
        "metrics": folded,
        "metrics_at": ONE_O_CLOCK,
        "health_metrics": folded,
        "health_metrics_at": ONE_O_CLOCK,
        "checkpoints": CHECKPOINTS,
        "price_per_minute": 0.65,
        **changes,
    }
    snapshot = RunSnapshot(job=subject, at=ONE_O_CLOCK, seen_at=ONE_O_CLOCK, **fields)
    checked = replace(judged(snapshot), kept_losses=KeptLosses(), faults=checkpoint_faults(snapshot))
    return replace(checked, **changes)


class StubRunFeed:
    """Publishes one snapshot and one part of the log, then waits to be cancelled."""

    def __init__(
        self,
        snapshot: RunSnapshot,
        job: TrainingJob,
        *,
        publish: Callable[[RunSnapshot], object],
        on_log: Callable[[LogPart], object],
        on_gone: Callable[[], object],
        span: timedelta,
        lines: tuple[LogLine, ...] | None = None,
    ) -> None:
        self.snapshot, self.publish, self.on_log, self.on_gone = snapshot, publish, on_log, on_gone
        self.lines = log_lines() if lines is None else lines
        self.spans = [span]
        self.asked = 0

    async def run(self) -> None:
        self.on_log(LogPart(self.lines))
        self.publish(self.snapshot)
        await asyncio.Event().wait()

    def refresh(self) -> None:
        self.asked += 1

    async def retry(self, gap: LogGap) -> None:
        """The gap stays."""

    def set_span(self, span: timedelta, shown: timedelta | None = None) -> None:
        self.spans.append(span)
