"""An in-memory backend of the emulator; its jobs do nothing and have the data that a test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from api_client.emulator.backend import LogQuery, StoredFile
from api_client.emulator.catalog import find_instance_type
from api_client.models import (
    CachedFile,
    Checkpoint,
    JobMetrics,
    JobStatus,
    LogRecord,
    MetricSample,
    NodeMetrics,
    NodeSeries,
    ProjectSummary,
    QueueEvent,
    StorageMetrics,
    TrainingJob,
    User,
)

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
MACHINE = find_instance_type("H100:8 208x1872")


class FakeBackend:
    """Has the methods of the emulator's ``LocalBackend``."""

    def __init__(self) -> None:
        self.by_id: dict[str, TrainingJob] = {}
        self.lines: dict[str, list[LogRecord]] = {}
        self.histories: dict[str, list[QueueEvent]] = {}
        self.stored_files: dict[str, list[StoredFile]] = {}
        self.caches: dict[str, list[CachedFile]] = {}
        self.metric_requests: list[tuple[float | None, float | None, int | None]] = []
        self.specs: list[Mapping[str, Any]] = []
        self.spec_by_id: dict[str, Mapping[str, Any]] = {}

    def add(self, job_id: str, project_id: str, status: str = JobStatus.RUNNING, **more: Any) -> TrainingJob:
        fields = {
            "name": f"job {job_id}",
            "node_count": 2,
            "priority": 0,
            "availability_model": "dedicated",
            "created_at": START,
            "updated_at": START,
            **more,
        }
        job = TrainingJob(
            id=job_id,
            current_status=status,
            training_project_id=project_id,
            training_project=ProjectSummary(id=project_id, name=f"project {project_id}"),
            instance_type=MACHINE,
            user=User(email="someone@example.com"),
            **fields,
        )
        self.by_id[job_id] = job
        self.histories[job_id] = [
            QueueEvent(training_job_id=job_id, training_job_name=job.name, status=status, created=START)
        ]
        return job

    def add_archive(self, job_id: str, bucket: str, key: str) -> None:
        artifact = {"s3_bucket": bucket, "s3_key": key}
        self.spec_by_id[job_id] = {"image": {"base_image": "x"}, "runtime": {"artifacts": [artifact]}}

    def set_status(self, job_id: str, status: str) -> TrainingJob:
        self.by_id[job_id] = self.by_id[job_id].model_copy(update={"current_status": status})
        return self.by_id[job_id]

    async def start(self) -> None:
        """Nothing to take up."""

    async def close(self) -> None:
        """Nothing to stop."""

    async def create(self, job_id: str, project: ProjectSummary, spec: Mapping[str, Any]) -> TrainingJob:
        self.specs.append(spec)
        self.spec_by_id[job_id] = spec
        return self.add(job_id, project.id, JobStatus.CREATED, name=spec.get("name"))

    def owns(self, job_id: str) -> bool:
        return job_id in self.by_id

    def jobs(self) -> Sequence[TrainingJob]:
        return list(self.by_id.values())

    def job(self, job_id: str) -> TrainingJob:
        return self.by_id[job_id]

    def spec(self, job_id: str) -> Mapping[str, Any]:
        return self.spec_by_id.get(job_id, {})

    def logs(self, job_id: str, query: LogQuery) -> list[LogRecord]:
        found = [
            line
            for line in self.lines.get(job_id, [])
            if query.start_ns <= int(line["timestamp"]) < query.end_ns
            and (query.levels is None or line.get("level") in query.levels)
        ]
        ordered = sorted(found, key=lambda line: int(line["timestamp"]), reverse=query.direction == "desc")
        return ordered[: query.limit]

    def log_is_complete(self, job_id: str) -> bool:
        return self.by_id[job_id].is_finished

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        self.metric_requests.append((start_s, end_s, step_s))
        sample = [MetricSample(timestamp=START, value=0.5)]
        series = NodeSeries(
            gpu_memory_usage_bytes={"0": sample, "1": sample},
            gpu_utilization={"0": sample, "1": sample},
            cpu_usage=sample,
            cpu_memory_usage_bytes=sample,
            ephemeral_storage=StorageMetrics(),
        )
        nodes = [NodeMetrics(node_id=f"node-{rank}", metrics=series) for rank in range(2)]
        storage = StorageMetrics(usage_bytes=sample, utilization=sample)
        job = self.by_id[job_id]
        return JobMetrics(**series.model_dump(), cache=storage, per_node_metrics=nodes, training_job=job)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        return [
            Checkpoint(
                checkpoint_id="checkpoint-100",
                created_at=START,
                checkpoint_type="lora",
                base_model="meta-llama/Llama-3.1-8B",
                lora_adapter_config={"r": 16, "dropout": float("nan")},
                size_bytes=1234,
                sync_status="COMPLETE",
                training_job_id=job_id,
            ),
            Checkpoint(
                checkpoint_id=".",
                created_at=START,
                checkpoint_type="full",
                size_bytes=0,
                training_job_id=job_id,
            ),
        ]

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        return self.stored_files.get(job_id, [])

    def events(self, job_id: str) -> list[QueueEvent]:
        return self.histories[job_id]

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        return self.caches.get(project_id)

    async def stop(self, job_id: str) -> TrainingJob:
        return self.set_status(job_id, JobStatus.STOPPED)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        old = self.by_id[job_id]
        self.spec_by_id[new_job_id] = self.spec(job_id)
        return self.add(new_job_id, old.project_id, JobStatus.CREATED, name=old.name)

    async def delete(self, job_id: str) -> None:
        del self.by_id[job_id]

    async def preempt(self, job_id: str) -> TrainingJob:
        return self.set_status(job_id, JobStatus.PREEMPTED)

    async def delete_cache(self, project_id: str) -> None:
        self.caches.pop(project_id, None)

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        self.by_id[job_id] = self.by_id[job_id].model_copy(update=dict(changes))
        return self.by_id[job_id]
