"""Scheduling of local jobs: starts them in queue order, runs them and records their status."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from api_client.clock import Clock
from api_client.definitions.job_request import read_job_request
from api_client.emulator.platform import SPOT
from api_client.emulator.runner.folders import CannotStart
from api_client.emulator.runner.job_run import JobOutcome, JobRun, RunServices
from api_client.emulator.runner.node_queue import NodeQueue, WaitingJob, gpu_pools
from api_client.emulator.runner.weights import parse_weights
from api_client.emulator.store.jobs import StoredJob
from api_client.models import JobStatus
from api_client.words import counted

CLOSE_TIMEOUT_S = 5.0
STOPPED = JobOutcome(JobStatus.STOPPED)


class Dispatcher:
    """The waiting and the running jobs. For use on a single event loop."""

    def __init__(self, services: RunServices, clock: Clock) -> None:
        self._jobs = services.stores.jobs
        self._services = services
        self._clock = clock
        self._queue = NodeQueue(services.max_nodes, partial(gpu_pools, services.stores))
        self._running: dict[str, tuple[JobRun, asyncio.Task[None]]] = {}
        self._closing = False

    def submit(self, job_id: str) -> None:
        """Queue a newly stored job: it starts now if there is room, otherwise it becomes PENDING."""
        self.enqueue(job_id)
        self.admit()
        waits = self._queue.is_waiting(job_id)
        self.set_status(job_id, JobStatus.PENDING if waits else JobStatus.CREATED)

    def enqueue(self, job_id: str) -> None:
        """Put a job in the queue, or move it to the position of its new priority."""
        row = self._jobs.get(job_id)
        spec = read_job_request(row.spec)
        wanted = WaitingJob(
            job_id,
            row.job.priority or 0,
            row.sequence,
            spec.node_count,
            project_id=row.job.project_id,
            # Spot jobs use no pool: they may push usage above the limit.
            gpu_type=None if row.job.availability_model == SPOT else spec.gpu_type,
            gpus=spec.total_gpus,
        )
        try:
            self._check(row)
        except CannotStart:
            # It starts only to report why it cannot run, and needs no room for that.
            wanted = replace(wanted, nodes=0, gpu_type=None)
        self._queue.add(wanted)

    def is_waiting(self, job_id: str) -> bool:
        return self._queue.is_waiting(job_id)

    def admit(self) -> None:
        if self._closing:
            return
        for job_id in self._queue.admit():
            row = self._jobs.get(job_id)
            if row.job.current_status == JobStatus.PENDING:
                self.set_status(job_id, JobStatus.CREATED)
            run = JobRun(
                row.job,
                read_job_request(row.spec),
                self._services,
                on_status=partial(self.set_status, job_id),
                check=partial(self._check, row),
            )
            task = asyncio.create_task(self._run(job_id, run), name=f"job {job_id}")
            self._running[job_id] = run, task

    async def end(
        self, job_id: str, *, kill: bool, timeout_s: float | None, outcome: JobOutcome = STOPPED
    ) -> None:
        """End a waiting or running job; return when it has ended, or after the timeout."""
        if self._queue.is_waiting(job_id):
            self._queue.remove(job_id)
            self.finish(job_id, outcome)
            self.admit()
            return
        if job_id in self._running:
            run, task = self._running[job_id]
            run.request_end(outcome, kill=kill)
            await asyncio.wait([task], timeout=timeout_s)

    async def close(self, reason: str) -> None:
        """Kill all running jobs with that reason; waiting jobs stay in the queue for the next start."""
        self._closing = True
        for run, _ in self._running.values():
            run.request_end(JobOutcome(JobStatus.FAILED, reason), kill=True)
        if self._running:
            await asyncio.wait([task for _, task in self._running.values()], timeout=CLOSE_TIMEOUT_S)

    def finish(self, job_id: str, outcome: JobOutcome) -> None:
        self.set_status(job_id, outcome.status, outcome.error_message, outcome.exit_code)

    def set_status(
        self, job_id: str, status: JobStatus, message: str | None = None, exit_code: int | None = None
    ) -> None:
        self._jobs.set_status(job_id, status, self._clock.now(), message=message, exit_code=exit_code)

    def _check(self, row: StoredJob) -> None:
        """Raise ``CannotStart`` if the job can never run here or exceeds a fixed GPU limit."""
        spec, most = read_job_request(row.spec), self._services.max_nodes
        if not any(command.strip() for command in spec.start_commands):
            raise CannotStart("runtime.start_commands is empty: nothing to run")
        if not 1 <= spec.node_count <= most:
            raise CannotStart(
                f"compute.node_count is {spec.node_count}; this emulator runs at most {counted(most, 'node')}"
            )
        parse_weights(spec.weights)
        for source in spec.load_from or ():
            if source.is_loops:
                raise CannotStart("load_checkpoint_config: there are no Loops checkpoints on this machine")
            if source.is_nameless:
                raise CannotStart("load_checkpoint_config: a named checkpoint needs its checkpoint_name")
        if spec.gpu_type is None or row.job.availability_model == SPOT:
            return
        for pool in gpu_pools(self._services.stores, row.job.project_id, spec.gpu_type):
            if pool.is_fixed and spec.total_gpus > pool.limit:
                raise CannotStart(
                    f"the job requests {spec.total_gpus} × {spec.gpu_type}, but the limit is {pool.limit}"
                )

    async def _run(self, job_id: str, run: JobRun) -> None:
        try:
            outcome = await run.run()
            await self._services.logs.flush()
            self._services.logs.forget(job_id)
            self._services.checkpoints.forget(job_id)
            self.finish(job_id, outcome)
        finally:
            self._running.pop(job_id, None)
            self._queue.remove(job_id)
            self.admit()
