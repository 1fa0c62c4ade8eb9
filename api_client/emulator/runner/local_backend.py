"""The emulator backend that runs jobs as processes of this machine; also their metrics and caches."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api_client.clock import Clock
from api_client.definitions.job_request import read_job_request
from api_client.emulator.backend import LogQuery, StoredFile, default_step_s, job_metrics
from api_client.emulator.data_folder import remove_tree
from api_client.emulator.job_spec import requested_instance
from api_client.emulator.runner.checkpoints import CheckpointStore
from api_client.emulator.runner.dispatcher import Dispatcher
from api_client.emulator.runner.environment import kill_orphans
from api_client.emulator.runner.folders import DataFolders
from api_client.emulator.runner.job_run import JobOutcome, RunServices
from api_client.emulator.runner.log_writer import LogWriter
from api_client.emulator.runner.sampling import Gpus, Sampling
from api_client.emulator.runner.weights import WeightsMirror
from api_client.emulator.store.jobs import StoredJob
from api_client.emulator.store.stores import Stores
from api_client.models import (
    CachedFile,
    Checkpoint,
    JobMetrics,
    JobStatus,
    LogRecord,
    ProjectSummary,
    QueueEvent,
    TrainingJob,
    User,
)
from api_client.models.account import EMULATOR_USER_EMAIL


def list_cache(root: Path) -> list[CachedFile] | None:
    """List every file and directory below ``root`` by relative path; return None if there is no cache."""
    if not root.is_dir():
        return None
    found = []
    for parent, folders, names in os.walk(root):
        folders.sort()
        for name in sorted((*folders, *names)):
            path = Path(parent) / name
            try:
                status = path.lstat()
            except OSError:
                continue  # deleted in the meantime
            is_folder = stat.S_ISDIR(status.st_mode)
            found.append(
                CachedFile(
                    path=path.relative_to(root).as_posix(),
                    size_bytes=0 if is_folder else status.st_size,
                    modified=datetime.fromtimestamp(status.st_mtime, UTC).isoformat(),
                    file_type="directory" if is_folder else "file",
                    permissions=stat.filemode(status.st_mode),
                )
            )
    return found


SECOND_S = 1.0
MAX_RUNNING_NODES = 8
STOP_GRACE_S = 5.0
STOP_ANSWER_S = 2.0
"""A stop is answered after this long, even if the job is still in its grace period."""
SAMPLES_KEPT = timedelta(days=30)

RESTARTED = "the emulator was restarted while this job ran"
RECLAIMED = "the spot machine was reclaimed"
SHUT_DOWN = "the emulator was shut down while this job ran"


class LocalBackend:
    """Runs jobs as unsandboxed processes of this machine; implements ``Backend``.

    ``data_dir`` will contain ``jobs/``, ``caches/``, ``team_caches/`` and ``weights/``. Call ``start`` once
    before use and ``close`` at the end, both on the server's event loop.
    """

    def __init__(
        self,
        stores: Stores,
        data_dir: Path,
        clock: Clock,
        *,
        max_running_nodes: int = MAX_RUNNING_NODES,
        stop_grace_s: float = STOP_GRACE_S,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        environ = dict(os.environ if environ is None else environ)
        self._clock = clock
        self._jobs, self._logs, self._metrics = stores.jobs, stores.logs, stores.metrics
        self._folders = DataFolders(data_dir, stores.team_of)
        self._checkpoints = CheckpointStore(stores, self._folders, max_running_nodes, clock.monotonic)
        gpus = Gpus(environ)
        self._services = RunServices(
            logs=LogWriter(self._logs, clock),
            sampling=Sampling(self._metrics, clock, gpus),
            gpus=gpus,
            stores=stores,
            environ=environ,
            stop_grace_s=stop_grace_s,
            max_nodes=max_running_nodes,
            weights=WeightsMirror(self._folders.weights, environ, self._clock.monotonic),
            checkpoints=self._checkpoints,
            folders=self._folders,
        )
        self._dispatcher = Dispatcher(self._services, clock)

    # Life cycle

    async def start(self) -> None:
        """Recover jobs of an earlier emulator: waiting jobs stay queued, running ones become FAILED."""
        for row in self._jobs.all():
            if row.job.is_finished:
                continue
            if row.job.current_status == JobStatus.PENDING:
                self._dispatcher.enqueue(row.job.id)
                continue
            folders = self._folders.job(row.job.id)
            await asyncio.to_thread(kill_orphans, folders.root)
            await asyncio.to_thread(folders.wipe)
            self._dispatcher.finish(row.job.id, JobOutcome(JobStatus.FAILED, RESTARTED))
        self._metrics.forget_before((self._clock.now() - SAMPLES_KEPT).timestamp())
        self._dispatcher.admit()

    async def close(self) -> None:
        """Kill all running jobs and write their remaining log lines."""
        await self._dispatcher.close(SHUT_DOWN)
        await self._services.sampling.close()
        await self._services.logs.close()

    # Reads

    def owns(self, job_id: str) -> bool:
        return job_id in self._jobs

    def jobs(self) -> Sequence[TrainingJob]:
        return [self._shown(row) for row in self._jobs.all()]

    def job(self, job_id: str) -> TrainingJob:
        return self._shown(self._jobs.get(job_id))

    def spec(self, job_id: str) -> Mapping[str, Any]:
        return self._jobs.get(job_id).spec

    def logs(self, job_id: str, wanted: LogQuery) -> list[LogRecord]:
        return self._logs.read(job_id, wanted)

    def log_is_complete(self, job_id: str) -> bool:
        return self.job(job_id).is_finished and not self._services.logs.is_holding(job_id)

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        """Return means per step; an open range covers the whole run, up to its end or to now."""
        job, now_s = self.job(job_id), self._clock.now().timestamp()
        first_s, last_s = self._metrics.span_s(job_id) or (now_s, now_s)
        if end_s is None:
            end_s = last_s + SECOND_S if job.is_finished else now_s
        if start_s is None:
            start_s = min(first_s, end_s)
        step = step_s if step_s and step_s > 0 else default_step_s(end_s - start_s)
        if start_s <= first_s:
            start_s = first_s - step  # the first step begins before the first sample
        series = self._metrics.read(job_id, start_s=start_s, end_s=end_s, step_s=step)
        return job_metrics(job, series.nodes, series.cache)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        row, now = self._jobs.get(job_id), self._clock.now()
        return [
            found.describe(job_id, settled=row.job.is_finished or found.is_settled(now))
            for found in self._checkpoints.of(row)
        ]

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        found = self._checkpoints.of(self._jobs.get(job_id))
        return [file.stored for checkpoint in found for file in checkpoint.files]

    def events(self, job_id: str) -> list[QueueEvent]:
        return list(self._jobs.get(job_id).events)

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        return list_cache(self._folders.caches(project_id).project)

    # Actions

    async def create(self, job_id: str, project: ProjectSummary, spec: Mapping[str, Any]) -> TrainingJob:
        """Store and queue a job; it starts as soon as there is room."""
        parsed = read_job_request(spec)
        now = self._clock.now()
        job = TrainingJob(
            id=job_id,
            current_status=JobStatus.CREATED,
            created_at=now,
            updated_at=now,
            training_project_id=project.id,
            training_project=project,
            instance_type=requested_instance(spec),
            name=parsed.name,
            priority=parsed.priority,
            availability_model=parsed.availability_model,
            user=User(email=EMULATOR_USER_EMAIL),
            node_count=parsed.node_count,
        )
        self._jobs.add(job, spec)
        self._dispatcher.submit(job_id)
        return self.job(job_id)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        row = self._jobs.get(job_id)
        project = row.job.training_project or ProjectSummary(id=row.job.training_project_id)
        return await self.create(new_job_id, project, row.spec)

    async def stop(self, job_id: str) -> TrainingJob:
        """Stop the job and all its processes; a job still in its grace period is returned as running."""
        await self._dispatcher.end(job_id, kill=False, timeout_s=STOP_ANSWER_S)
        return self.job(job_id)

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        """Change ``priority`` or ``availability_model`` of a waiting job; leave other jobs unchanged."""
        if self._dispatcher.is_waiting(job_id):
            self._jobs.change(job_id, self._clock.now(), **changes)
            self._dispatcher.enqueue(job_id)
            self._dispatcher.admit()
        return self.job(job_id)

    async def preempt(self, job_id: str) -> TrainingJob:
        """Preempt a job, as the platform may do with spot jobs; its processes get a grace period."""
        outcome = JobOutcome(JobStatus.PREEMPTED, RECLAIMED)
        await self._dispatcher.end(job_id, kill=False, timeout_s=STOP_ANSWER_S, outcome=outcome)
        return self.job(job_id)

    async def forget_project(self, project_id: str) -> None:
        """Delete the project's cache, which lives as long as the project."""
        await asyncio.to_thread(remove_tree, self._folders.caches(project_id).base)

    def limits_changed(self) -> None:
        self._dispatcher.admit()

    async def delete(self, job_id: str) -> None:
        await self._dispatcher.end(job_id, kill=True, timeout_s=None)
        folder = self._folders.job(job_id).root
        self._jobs.delete(job_id)
        self._checkpoints.forget(job_id)
        await asyncio.to_thread(self._forget, job_id, folder)

    def _forget(self, job_id: str, folder: Path) -> None:
        self._logs.delete(job_id)
        self._metrics.delete(job_id)
        remove_tree(folder)

    def _shown(self, row: StoredJob) -> TrainingJob:
        """Add the checkpoint sync status, which only the disk can tell."""
        found = self._checkpoints.of(row) if row.has_run else []
        if not found:
            return row.job
        now = self._clock.now()
        settled = row.job.is_finished or all(checkpoint.is_settled(now) for checkpoint in found)
        return row.job.model_copy(update={"checkpoint_sync_status": "COMPLETED" if settled else "SYNCING"})
