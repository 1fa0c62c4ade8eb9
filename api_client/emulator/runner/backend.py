"""The emulator backend that runs jobs on this machine."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

from api_client.clock import Clock
from api_client.definitions.job_request import read_job_request
from api_client.emulator.backend import LogQuery, StoredFile, default_step_s, job_metrics
from api_client.emulator.data_folder import remove_tree
from api_client.emulator.job_spec import requested_instance
from api_client.emulator.runner.checkpoints import CheckpointStore
from api_client.emulator.runner.environment import PROJECT_CACHE, DataFolders, kill_orphans, walk
from api_client.emulator.runner.job_run import JobRun, Outcome, RunServices
from api_client.emulator.runner.sampling import Gpus
from api_client.emulator.store.stores import StoredJob, Stores
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
    is_finished,
)
from api_client.models.account import EMULATOR_USER_EMAIL


def list_cache(root: Path) -> list[CachedFile] | None:
    """List every file and directory below ``root`` by relative path; return None if there is no cache."""
    if not root.is_dir():
        return None
    return [
        CachedFile(
            path=path.relative_to(root).as_posix(),
            size_bytes=0 if stat.S_ISDIR(status.st_mode) else status.st_size,
            modified=datetime.fromtimestamp(status.st_mtime, UTC).isoformat(),
            file_type="directory" if stat.S_ISDIR(status.st_mode) else "file",
            permissions=stat.filemode(status.st_mode),
        )
        for path, status in walk(root)
    ]


STOPPED = Outcome(JobStatus.STOPPED)


class LocalBackend:
    """Runs jobs as unsandboxed processes of this machine; a ``Backend``.

    Each job runs in a thread. Call ``start`` once before use and ``close`` at the end.
    """

    def __init__(
        self,
        stores: Stores,
        data_dir: Path,
        clock: Clock,
        *,
        max_running_nodes: int = 8,
        stop_grace_s: float = 5.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        environ = dict(os.environ if environ is None else environ)
        folders = DataFolders(data_dir.absolute(), stores.team_of)
        self._jobs = stores.jobs
        self._shared = RunServices(
            stores=stores,
            clock=clock,
            gpus=Gpus(environ),
            environ=environ,
            stop_grace_s=stop_grace_s,
            max_nodes=max_running_nodes,
            checkpoints=CheckpointStore(stores, folders, max_running_nodes, clock.monotonic),
            folders=folders,
        )
        self._runs: dict[str, JobRun] = {}
        self._closing = False
        self._lock = RLock()
        """Held while statuses change, so that no two threads start the same job."""

    # Life cycle

    async def start(self) -> None:
        """Recover jobs of an earlier emulator: waiting jobs stay queued, running ones become FAILED."""
        for row in self._jobs.all():
            if not row.job.is_finished and row.job.current_status != JobStatus.PENDING:
                folders = self._shared.folders.job(row.job.id)
                await asyncio.to_thread(kill_orphans, folders.root)
                await asyncio.to_thread(folders.wipe)
                restarted = "the emulator was restarted while this job ran"
                self._enter(row.job.id, Outcome(JobStatus.FAILED, restarted))
        self._admit()

    async def close(self) -> None:
        """Kill all running jobs; waiting jobs stay in the queue for the next start."""
        with self._lock:
            self._closing = True
            runs = list(self._runs.values())
        shut_down = Outcome(JobStatus.FAILED, "the emulator was shut down while this job ran")
        for run in runs:
            run.request_end(shut_down, kill=True)
        deadline_s = time.monotonic() + 5.0
        for run in runs:
            await asyncio.to_thread(run.join, max(0.0, deadline_s - time.monotonic()))

    # Reads

    def owns(self, job_id: str) -> bool:
        return job_id in self._jobs

    def jobs(self) -> Sequence[TrainingJob]:
        """Return all jobs except deleted ones, in no particular order."""
        return [self._with_sync_status(row) for row in self._jobs.all()]

    def job(self, job_id: str) -> TrainingJob:
        return self._with_sync_status(self._jobs[job_id])

    def spec(self, job_id: str) -> Mapping[str, Any]:
        return self._jobs[job_id].spec

    def logs(self, job_id: str, query: LogQuery) -> list[LogRecord]:
        return self._shared.stores.logs.read(job_id, query)

    def log_is_complete(self, job_id: str) -> bool:
        """Return True if the job has ended and its last log line can be read."""
        return self._jobs[job_id].job.is_finished

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        """Return means per step; an open range covers the whole run, up to its end or to now."""
        job, now_s, store = (
            self.job(job_id),
            self._shared.clock.now().timestamp(),
            self._shared.stores.metrics,
        )
        first_s, last_s = store.span_s(job_id) or (now_s, now_s)
        if end_s is None:
            end_s = last_s + 1 if job.is_finished else now_s
        if start_s is None:
            start_s = min(first_s, end_s)
        step = step_s if step_s and step_s > 0 else default_step_s(end_s - start_s)
        if start_s <= first_s:
            start_s = first_s - step  # the first step begins before the first sample
        nodes, cache = store.read(job_id, start_s=start_s, end_s=end_s, step_s=step)
        return job_metrics(job, nodes, cache)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """Return the checkpoints, oldest first."""
        row, now = self._jobs[job_id], self._shared.clock.now()
        return [
            checkpoint.describe(job_id, is_settled=row.job.is_finished or checkpoint.is_settled(now))
            for checkpoint in self._shared.checkpoints.of(row)
        ]

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        """Return the files of all checkpoints; each name starts with the checkpoint's name."""
        checkpoints = self._shared.checkpoints.of(self._jobs[job_id])
        return [file for checkpoint in checkpoints for file in checkpoint.files]

    def events(self, job_id: str) -> list[QueueEvent]:
        return list(self._jobs[job_id].events)

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        """List the project's cache; return None if it has none."""
        return list_cache(self._shared.folders.cache(project_id) / PROJECT_CACHE)

    # Actions

    async def create(self, job_id: str, project: ProjectSummary, spec: Mapping[str, Any]) -> TrainingJob:
        """Store a job; it starts now if there is room, otherwise it becomes PENDING."""
        parsed = read_job_request(spec)
        now = self._shared.clock.now()
        job = TrainingJob(
            id=job_id,
            current_status=JobStatus.PENDING,
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
        with self._lock:
            self._jobs.put(job_id, StoredJob(job, spec))
            self._admit()
            if not self._jobs[job_id].events:
                self._enter(job_id, Outcome(JobStatus.PENDING))
        return self.job(job_id)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        row = self._jobs[job_id]
        project = row.job.training_project or ProjectSummary(id=row.job.training_project_id)
        return await self.create(new_job_id, project, row.spec)

    async def stop(self, job_id: str) -> TrainingJob:
        """Stop the job and all of its processes; it may still be running (grace period) in the result."""
        await self._end(job_id, STOPPED)
        return self.job(job_id)

    async def preempt(self, job_id: str) -> TrainingJob:
        """Preempt a job, as the platform may do with spot jobs; its processes get a grace period."""
        reclaimed = Outcome(JobStatus.PREEMPTED, "the spot machine was reclaimed")
        await self._end(job_id, reclaimed)
        return self.job(job_id)

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        """Change ``priority`` or ``availability_model`` of a waiting job; leave other jobs unchanged."""
        with self._lock:
            if self._jobs[job_id].job.current_status == JobStatus.PENDING:
                self._jobs.put(job_id, self._jobs[job_id].changed(self._shared.clock.now(), **changes))
                self._admit()
        return self.job(job_id)

    async def delete_cache(self, project_id: str) -> None:
        """Delete the project's cache, which lives as long as the project."""
        await asyncio.to_thread(remove_tree, self._shared.folders.cache(project_id))

    async def delete(self, job_id: str) -> None:
        """Stop the job if necessary, then delete it and its data."""
        await self._end(job_id, STOPPED, timeout_s=None, kill=True)
        self._jobs.delete(job_id)
        self._shared.checkpoints.forget(job_id)
        self._shared.stores.metrics.delete(job_id)
        await asyncio.to_thread(self._shared.stores.logs.delete, job_id)
        await asyncio.to_thread(remove_tree, self._shared.folders.job(job_id).root)

    async def _end(
        self, job_id: str, outcome: Outcome, *, timeout_s: float | None = 2.0, kill: bool = False
    ) -> None:
        """End a waiting or running job; return when it has ended, or after ``timeout_s``."""
        with self._lock:
            run = self._runs.get(job_id)
            if run is None and not self._jobs[job_id].job.is_finished:
                self._enter(job_id, outcome)
                self._admit()
        if run is not None:
            run.request_end(outcome, kill=kill)
            await asyncio.to_thread(run.join, timeout_s)

    def _admit(self) -> None:
        """Start the waiting jobs that fit, by priority and then by age.

        A waiting job reserves its nodes before later ones: none overtakes it, so that small jobs can't starve
        a large one. A job that is too large for this machine is started at once, to fail with that message.
        """
        with self._lock:
            nodes, most = 0, self._shared.max_nodes
            rows = [row for row in self._jobs.all() if not row.job.is_finished and not self._closing]
            rows.sort(key=lambda row: (row.job.id not in self._runs, -(row.job.priority or 0)))
            for row in rows:
                node_count = row.job.node_count or 1
                nodes += node_count if node_count <= most else 0
                if row.job.id not in self._runs and nodes <= most:
                    self._begin(row)

    def _begin(self, row: StoredJob) -> None:
        job_id = row.job.id
        self._enter(job_id, Outcome(JobStatus.CREATED))
        run = JobRun(row.job, read_job_request(row.spec), self._shared, partial(self._record_status, job_id))
        self._runs[job_id] = run
        run.start()

    def _record_status(self, job_id: str, outcome: Outcome) -> None:
        """Record a status of a running job; called in its thread."""
        with self._lock:
            self._enter(job_id, outcome)
            if is_finished(outcome.status):
                self._shared.checkpoints.forget(job_id)
                self._runs.pop(job_id)
                self._admit()

    def _enter(self, job_id: str, outcome: Outcome) -> None:
        entered = self._jobs[job_id].entered(
            outcome.status, self._shared.clock.now(), outcome.message, outcome.exit_code
        )
        self._jobs.put(job_id, entered)

    def _with_sync_status(self, row: StoredJob) -> TrainingJob:
        """Add the checkpoint sync status, which is derived from the files on disk."""
        checkpoints, now = self._shared.checkpoints.of(row) if row.has_run else [], self._shared.clock.now()
        if not checkpoints:
            return row.job
        is_synced = row.job.is_finished or all(checkpoint.is_settled(now) for checkpoint in checkpoints)
        return row.job.model_copy(update={"checkpoint_sync_status": "COMPLETED" if is_synced else "SYNCING"})
