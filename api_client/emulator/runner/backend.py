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

    A thread watches the processes of each job. Call ``start`` once before use and ``close`` at the end.
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
        self._services = RunServices(
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
        self._is_closing = False
        self._lock = RLock()
        """Held while statuses change, so that no two threads start the same job."""

    # Life cycle

    async def start(self) -> None:
        """Recover the jobs of an earlier emulator: waiting jobs stay queued, running jobs become FAILED."""
        for stored_job in self._jobs.all():
            if not stored_job.job.is_finished and stored_job.job.current_status != JobStatus.PENDING:
                folders = self._services.folders.job(stored_job.job.id)
                await asyncio.to_thread(kill_orphans, folders.root)
                await asyncio.to_thread(folders.wipe)
                message = "the emulator was restarted while this job ran"
                self._enter_status(stored_job.job.id, Outcome(JobStatus.FAILED, message))
        self._start_waiting_jobs()

    async def close(self) -> None:
        """Kill all running jobs; waiting jobs stay in the queue for the next start."""
        with self._lock:
            self._is_closing = True
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
        """Return all jobs that are not deleted, in no particular order."""
        return [self._with_sync_status(stored_job) for stored_job in self._jobs.all()]

    def job(self, job_id: str) -> TrainingJob:
        return self._with_sync_status(self._jobs[job_id])

    def spec(self, job_id: str) -> Mapping[str, Any]:
        return self._jobs[job_id].spec

    def logs(self, job_id: str, query: LogQuery) -> list[LogRecord]:
        return self._services.stores.logs.read(job_id, query)

    def log_is_complete(self, job_id: str) -> bool:
        """Return True if the job has ended and its last log line can be read."""
        return self._jobs[job_id].job.is_finished

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        """Return means over intervals of ``step_s``; by default, of the whole run, up to its end or now."""
        job, now_s, store = (
            self.job(job_id),
            self._services.clock.now().timestamp(),
            self._services.stores.metrics,
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
        stored_job, now = self._jobs[job_id], self._services.clock.now()
        return [
            checkpoint.describe(job_id, is_settled=stored_job.job.is_finished or checkpoint.is_settled(now))
            for checkpoint in self._services.checkpoints.of_job(stored_job)
        ]

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        """Return the files of all checkpoints; each name starts with the checkpoint's name."""
        checkpoints = self._services.checkpoints.of_job(self._jobs[job_id])
        return [file for checkpoint in checkpoints for file in checkpoint.files]

    def events(self, job_id: str) -> list[QueueEvent]:
        return list(self._jobs[job_id].events)

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        """List the project's cache; return None if the project has no cache."""
        return list_cache(self._services.folders.cache(project_id) / PROJECT_CACHE)

    # Actions

    async def create(self, job_id: str, project: ProjectSummary, spec: Mapping[str, Any]) -> TrainingJob:
        """Store a job; it starts now if there are free nodes, otherwise it becomes PENDING."""
        request = read_job_request(spec)
        now = self._services.clock.now()
        job = TrainingJob(
            id=job_id,
            current_status=JobStatus.PENDING,
            created_at=now,
            updated_at=now,
            training_project_id=project.id,
            training_project=project,
            instance_type=requested_instance(spec),
            name=request.name,
            priority=request.priority,
            availability_model=request.availability_model,
            user=User(email=EMULATOR_USER_EMAIL),
            node_count=request.node_count,
        )
        with self._lock:
            self._jobs.put(job_id, StoredJob(job, spec))
            self._start_waiting_jobs()
            if not self._jobs[job_id].events:
                self._enter_status(job_id, Outcome(JobStatus.PENDING))
        return self.job(job_id)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        stored_job = self._jobs[job_id]
        project = stored_job.job.training_project or ProjectSummary(id=stored_job.job.training_project_id)
        return await self.create(new_job_id, project, stored_job.spec)

    async def stop(self, job_id: str) -> TrainingJob:
        """Stop the job and all of its processes; return it, still running if the grace period is not over."""
        await self._end_job(job_id, STOPPED)
        return self.job(job_id)

    async def preempt(self, job_id: str) -> TrainingJob:
        """Preempt a job, as the platform may do with spot jobs; its processes get a grace period."""
        outcome = Outcome(JobStatus.PREEMPTED, "the spot machine was reclaimed")
        await self._end_job(job_id, outcome)
        return self.job(job_id)

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        """Change ``priority`` or ``availability_model`` of a waiting job; leave other jobs unchanged."""
        with self._lock:
            if self._jobs[job_id].job.current_status == JobStatus.PENDING:
                self._jobs.put(job_id, self._jobs[job_id].with_changes(self._services.clock.now(), **changes))
                self._start_waiting_jobs()
        return self.job(job_id)

    async def delete_cache(self, project_id: str) -> None:
        """Delete the cache of a project that is deleted."""
        await asyncio.to_thread(remove_tree, self._services.folders.cache(project_id))

    async def delete(self, job_id: str) -> None:
        """Stop the job if necessary, then delete it and its data."""
        await self._end_job(job_id, STOPPED, timeout_s=None, kill=True)
        self._jobs.delete(job_id)
        self._services.checkpoints.forget(job_id)
        self._services.stores.metrics.delete(job_id)
        await asyncio.to_thread(self._services.stores.logs.delete, job_id)
        await asyncio.to_thread(remove_tree, self._services.folders.job(job_id).root)

    async def _end_job(
        self, job_id: str, outcome: Outcome, *, timeout_s: float | None = 2.0, kill: bool = False
    ) -> None:
        """End a waiting or running job; return when it has ended, or after ``timeout_s``."""
        with self._lock:
            run = self._runs.get(job_id)
            if run is None and not self._jobs[job_id].job.is_finished:
                self._enter_status(job_id, outcome)
                self._start_waiting_jobs()
        if run is not None:
            run.request_end(outcome, kill=kill)
            await asyncio.to_thread(run.join, timeout_s)

    def _start_waiting_jobs(self) -> None:
        """Start the waiting jobs for which there are free nodes, by priority and then by age.

        No job overtakes an earlier job in the queue, so that small jobs can't starve a large job. A job that
        is too large for this machine is started at once, so that it fails with that message.
        """
        with self._lock:
            reserved_nodes, max_nodes = 0, self._services.max_nodes
            unfinished_jobs = [
                stored_job
                for stored_job in self._jobs.all()
                if not stored_job.job.is_finished and not self._is_closing
            ]
            unfinished_jobs.sort(
                key=lambda stored_job: (stored_job.job.id not in self._runs, -(stored_job.job.priority or 0))
            )
            for stored_job in unfinished_jobs:
                node_count = stored_job.job.node_count or 1
                reserved_nodes += node_count if node_count <= max_nodes else 0
                if stored_job.job.id not in self._runs and reserved_nodes <= max_nodes:
                    self._start_run(stored_job)

    def _start_run(self, stored_job: StoredJob) -> None:
        job_id = stored_job.job.id
        self._enter_status(job_id, Outcome(JobStatus.CREATED))
        run = JobRun(
            stored_job.job,
            read_job_request(stored_job.spec),
            self._services,
            partial(self._record_status, job_id),
        )
        self._runs[job_id] = run
        run.start()

    def _record_status(self, job_id: str, outcome: Outcome) -> None:
        """Store a status of a running job; called in the thread of the job."""
        with self._lock:
            self._enter_status(job_id, outcome)
            if is_finished(outcome.status):
                self._services.checkpoints.forget(job_id)
                self._runs.pop(job_id)
                self._start_waiting_jobs()

    def _enter_status(self, job_id: str, outcome: Outcome) -> None:
        changed_job = self._jobs[job_id].with_status(
            outcome.status, self._services.clock.now(), outcome.message, outcome.exit_code
        )
        self._jobs.put(job_id, changed_job)

    def _with_sync_status(self, stored_job: StoredJob) -> TrainingJob:
        """Add the checkpoint sync status, which is derived from the files on disk."""
        checkpoints, now = (
            self._services.checkpoints.of_job(stored_job) if stored_job.has_run else [],
            self._services.clock.now(),
        )
        if not checkpoints:
            return stored_job.job
        is_synced = stored_job.job.is_finished or all(
            checkpoint.is_settled(now) for checkpoint in checkpoints
        )
        return stored_job.job.model_copy(
            update={"checkpoint_sync_status": "COMPLETED" if is_synced else "SYNCING"}
        )
