"""Fixed worlds for screens: what the API might say at one o'clock, and feeds that say it once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from api_client.models import TrainingJob, TrainingProject
from tui.insight.fleet import FleetSnapshot, Glance, fold_fleet
from tui.insight.health import Finding, FindingKind
from tui.insight.progress import ProgressSnapshot

ONE_O_CLOCK = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)


def job(job_id: str, status: str = "RUNNING", **fields: Any) -> TrainingJob:
    hours = fields.pop("hours_ago", 1.0)
    took = fields.pop("took_hours", 0.0)
    created = ONE_O_CLOCK - timedelta(hours=hours)
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
    job("spot", "PREEMPTED", name="eval-sweep", project="evals", availability_model="SPOT", hours_ago=20, took_hours=2),
    job("novel", "HIBERNATING", name="from-the-future", project="evals", hours_ago=70, took_hours=1),
    job("broken", "DEPLOY_FAILED", name="flux-lora-2", project="flux-lora", error_message="image not found", hours_ago=80),
)
PROJECTS = tuple(
    TrainingProject(id=f"p-{name}", name=name) for name in ("llama-sft", "qwen3-grpo", "whisper", "evals", "flux-lora")
)
GLANCES = {
    "llama70": Glance(
        ProgressSnapshot(step=4120, total_steps=9000, eta_s=25_840.0, loss=0.9132),
        (0.9, 0.95, 0.97, 0.6, 0.95, 0.97, 0.96, 0.97),
    ),
    "grpo7": Glance(
        ProgressSnapshot(step=880, total_steps=2000),
        (1.0,) * 8,
        (Finding(FindingKind.STALLED, "critical", "no step for 9m"),),
    ),
    "whisper": Glance(ProgressSnapshot(step=310, total_steps=600, eta_s=1330.0), (0.4, 0.6, 0.5, 0.6, 0.5, 0.6)),
}


def fleet(jobs: tuple[TrainingJob, ...] = JOBS) -> FleetSnapshot:
    return fold_fleet(PROJECTS, jobs, GLANCES, ONE_O_CLOCK)


class StubFleetFeed:
    """Says one snapshot, then waits to be cancelled."""

    def __init__(self, snapshot: FleetSnapshot | None, publish: Callable[[FleetSnapshot], object]) -> None:
        self.snapshot = snapshot
        self.publish = publish
        self.asked = 0

    async def run(self) -> None:
        if self.snapshot is not None:
            self.publish(self.snapshot)
        await asyncio.Event().wait()

    def refresh(self) -> None:
        self.asked += 1
