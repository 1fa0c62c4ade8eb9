"""What a project's cache holds on this machine."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api_client.clock import Clock, SystemClock
from api_client.emulator.backend import LogQuery, StoredFile
from api_client.emulator.data_folder import remove_tree
from api_client.emulator.runner.changes import Changes
from api_client.emulator.runner.checkpoints import UNKNOWN_TEAM, Layout, is_safe_id, stored_files
from api_client.emulator.runner.dispatcher import Dispatcher
from api_client.emulator.runner.environment import kill_marked
from api_client.emulator.runner.job_run import OpenArtifact, Outcome, ResolveSecret, RunServices, wipe
from api_client.emulator.runner.log_writer import LogWriter
from api_client.emulator.runner.mounts import SystemLinks
from api_client.emulator.runner.node_queue import GpuPools
from api_client.emulator.runner.sampling import Gpus, Sampling
from api_client.emulator.runner.spec import parse_spec
from api_client.emulator.store.database import Database
from api_client.emulator.store.job_streams import LogStore, MetricStore, replica_name
from api_client.emulator.store.jobs import EventStore, JobRow, JobStore
from api_client.models import (
    CachedFile,
    Checkpoint,
    InstanceType,
    JobMetrics,
    JobStatus,
    LogRecord,
    NodeMetrics,
    NodeSeries,
    ProjectSummary,
    QueueEvent,
    TrainingJob,
    User,
)


def list_cache(root: Path) -> list[CachedFile] | None:
    """Every file and directory below ``root`` by relative path; None if there is no cache."""
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
                continue  # gone meanwhile
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


WANTED_POINTS = 250
"""Points of a series when the request leaves the step to us."""
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
SECOND_S = 1.0


def step_for(span_s: float) -> int:
    """The smallest round step, in seconds, that gives no more than the wanted number of points."""
    for step_s in STEPS_S:
        if span_s / step_s <= WANTED_POINTS:
            return step_s
    return STEPS_S[-1]


def answer_metrics(
    store: MetricStore,
    job: TrainingJob,
    *,
    now: datetime,
    start_s: float | None,
    end_s: float | None,
    step_s: int | None,
) -> JobMetrics:
    """The series of a job; a span left open is the whole run, up to its end or to now."""
    recorded = store.span_s(job.id)
    first_s, last_s = recorded or (now.timestamp(), now.timestamp())
    if end_s is None:
        end_s = last_s + SECOND_S if job.is_finished else now.timestamp()
    if start_s is None:
        start_s = min(first_s, end_s)
    step = step_s if step_s and step_s > 0 else step_for(end_s - start_s)
    if start_s <= first_s:
        start_s = first_s - step  # the first step begins before the first sample
    series = store.read(job.id, start_s=start_s, end_s=end_s, step_s=step)
    leader = series.nodes.get(0) or NodeSeries()
    return JobMetrics.model_construct(
        gpu_memory_usage_bytes=leader.gpu_memory_usage_bytes,
        gpu_utilization=leader.gpu_utilization,
        cpu_usage=leader.cpu_usage,
        cpu_memory_usage_bytes=leader.cpu_memory_usage_bytes,
        ephemeral_storage=leader.ephemeral_storage,
        cache=series.cache,
        training_job=job,
        per_node_metrics=[
            NodeMetrics.model_construct(node_id=replica_name(rank), metrics=node)
            for rank, node in series.nodes.items()
        ],
    )


MAX_RUNNING_NODES = 8
STOP_GRACE_S = 5.0
STOP_ANSWER_S = 2.0
"""A stop is answered after this long even if the job still uses its grace to end."""
SAMPLES_KEPT = timedelta(days=30)

RESTARTED = "the emulator was restarted while this job ran"
RECLAIMED = "the spot machine was reclaimed"
SHUT_DOWN = "the emulator was shut down while this job ran"


class LocalBackend:
    """Runs jobs as processes of this machine, unsandboxed; implements ``Backend``.

    - ``data_dir`` gets ``jobs/``, ``caches/``, ``team_caches/`` and ``weights/``;
    - ``resolve_secret`` gives a secret's value by project id and name, or None;
    - ``open_artifact`` gives the file of an uploaded archive by bucket and key, or None;
    - ``instance_for`` chooses the instance type that a payload would get;
    - ``team_of`` names the team of a project, by their ids: its projects share a cache;
    - ``gpu_pools`` gives the GPU limits of a project and GPU type; none without it.

    Call ``start`` once before use and ``close`` at the end, both on the event loop that serves.
    """

    def __init__(
        self,
        database: Database,
        data_dir: Path,
        clock: Clock | None = None,
        *,
        resolve_secret: ResolveSecret,
        open_artifact: OpenArtifact,
        instance_for: Callable[[Mapping[str, Any]], InstanceType],
        team_of: Callable[[str], str] = lambda _project_id: UNKNOWN_TEAM,
        gpu_pools: GpuPools = lambda _project_id, _gpu_type: (),
        max_running_nodes: int = MAX_RUNNING_NODES,
        stop_grace_s: float = STOP_GRACE_S,
        environ: Mapping[str, str] | None = None,
        user_email: str | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        self._clock = clock or SystemClock()
        self._instance_for = instance_for
        self._user_email = user_email
        self._jobs = JobStore(database)
        self._logs = LogStore(database)
        self._events = EventStore(database)
        self._metrics = MetricStore(database)
        self._changes = Changes()
        self._layout = Layout(
            data_dir, max_nodes=max_running_nodes, monotonic=self._clock.monotonic, team_of=team_of
        )
        self._links = SystemLinks(self._layout.links)
        gpus = Gpus(environ)
        self._services = RunServices(
            logs=LogWriter(self._logs, self._clock, self._changes),
            sampling=Sampling(self._metrics, self._clock, gpus, self._changes),
            gpus=gpus,
            resolve_secret=resolve_secret,
            open_artifact=open_artifact,
            environ=environ,
            stop_grace_s=stop_grace_s,
            max_nodes=max_running_nodes,
            gpu_pools=gpu_pools,
            links=self._links,
            mirror=self._layout.mirror,
            monotonic=self._clock.monotonic,
        )
        self._dispatcher = Dispatcher(
            self._jobs, self._events, self._layout, self._services, clock=self._clock, changes=self._changes
        )

    # Life

    async def start(self) -> None:
        """Take up what a former emulator left: waiting jobs wait on, running ones are FAILED."""
        await asyncio.to_thread(self._links.clear_leftovers)
        for row in self._jobs.unfinished():
            if row.job.current_status == JobStatus.PENDING:
                self._dispatcher.enqueue(row.job.id)
                continue
            await asyncio.to_thread(self._clean_up_after, row)
            self._dispatcher.finish(row.job.id, Outcome(JobStatus.FAILED, RESTARTED))
        self._metrics.forget_before((self._clock.now() - SAMPLES_KEPT).timestamp())
        self._dispatcher.admit()

    async def close(self) -> None:
        """Kill everything that runs and write what is known of it."""
        await self._dispatcher.close(SHUT_DOWN)
        await self._services.sampling.close()
        await self._services.logs.close()
        self._services.gpus.close()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return as soon as the condition holds; it is looked at now and after every change."""
        await self._changes.wait_until(condition)

    # Reading

    def owns(self, job_id: str) -> bool:
        """Whether the job is a local one."""
        return self._jobs.exists(job_id)

    def jobs(self) -> Sequence[TrainingJob]:
        """All local jobs, oldest first."""
        return [self._shown(row) for row in self._jobs.all()]

    def job(self, job_id: str) -> TrainingJob:
        """One job as it stands now."""
        return self._shown(self._jobs.get(job_id))

    def logs(self, job_id: str, wanted: LogQuery) -> list[LogRecord]:
        """The lines that are wanted."""
        return self._logs.read(job_id, wanted)

    def log_is_complete(self, job_id: str) -> bool:
        """Whether the job has ended and its last line is written."""
        return self.job(job_id).is_finished and not self._services.logs.is_holding(job_id)

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        """Means over steps; the whole run if no span is given."""
        return answer_metrics(
            self._metrics,
            self.job(job_id),
            now=self._clock.now(),
            start_s=start_s,
            end_s=end_s,
            step_s=step_s,
        )

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """Checkpoints, oldest first."""
        row = self._jobs.get(job_id)
        now_s = self._clock.now().timestamp()
        return [
            found.describe(job_id, settled=row.job.is_finished or found.is_settled(now_s))
            for found in self._layout.checkpoints(row)
        ]

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        """Files of all checkpoints, as they lie on the disk."""
        return stored_files(self._layout.checkpoints(self._jobs.get(job_id)))

    def events(self, job_id: str) -> list[QueueEvent]:
        """Status changes so far, oldest first."""
        return self._events.read(job_id, self._jobs.get(job_id).job.name)

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        """The project's cache; None if no job of it ever had one."""
        caches = self._layout.caches(project_id)
        return list_cache(caches.project) if caches is not None else None

    # Acting

    async def create(self, job_id: str, project: ProjectSummary, spec: Mapping[str, Any]) -> TrainingJob:
        """Take a job in; it starts as soon as there is room. Raises ValueError for an unusable id."""
        if not is_safe_id(job_id):
            raise ValueError(f"unusable job id: {job_id!r}")
        parsed = parse_spec(spec)
        now = self._clock.now()
        job = TrainingJob(
            id=job_id,
            current_status=JobStatus.CREATED,
            created_at=now,
            updated_at=now,
            training_project_id=project.id,
            training_project=project,
            instance_type=self._instance_for(spec),
            name=parsed.name,
            priority=parsed.priority,
            availability_model=parsed.availability_model,
            user=User(email=self._user_email) if self._user_email else None,
            node_count=parsed.node_count,
        )
        self._jobs.insert(job, spec)
        self._dispatcher.submit(job_id)
        return self.job(job_id)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        """A new job of the same configuration."""
        row = self._jobs.get(job_id)
        project = row.job.training_project or ProjectSummary(id=row.job.training_project_id)
        return await self.create(new_job_id, project, row.spec)

    async def stop(self, job_id: str) -> TrainingJob:
        """Stop a job and all it started; a job that uses its grace to end is answered as still running."""
        await self._dispatcher.end(job_id, kill=False, timeout_s=STOP_ANSWER_S)
        return self.job(job_id)

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        """Change ``priority`` or ``availability_model`` of a waiting job; others stay as they are."""
        if self._dispatcher.is_waiting(job_id):
            self._jobs.change(
                job_id,
                self._clock.now(),
                priority=changes.get("priority"),
                availability_model=changes.get("availability_model"),
            )
            self._dispatcher.enqueue(job_id)
            self._dispatcher.admit()
            self._changes.notify()
        return self.job(job_id)

    async def preempt(self, job_id: str) -> TrainingJob:
        """Take a job's machine away, as the platform may with spot jobs; its processes get their grace."""
        outcome = Outcome(JobStatus.PREEMPTED, RECLAIMED)
        await self._dispatcher.end(job_id, kill=False, timeout_s=STOP_ANSWER_S, outcome=outcome)
        return self.job(job_id)

    async def forget_project(self, project_id: str) -> None:
        """Delete the project's cache: it lives as long as the project (API facts, 5)."""
        caches = self._layout.caches(project_id)
        if caches is not None:
            await asyncio.to_thread(remove_tree, caches.base)

    def limits_changed(self) -> None:
        """Look again at who may start."""
        self._dispatcher.admit()

    async def delete(self, job_id: str) -> None:
        """Kill the job if it runs, then forget it, its data and its files."""
        await self._dispatcher.end(job_id, kill=True, timeout_s=None)
        folder = self._layout.job(self._jobs.get(job_id)).root
        self._jobs.delete([job_id])
        self._layout.forget(job_id)
        await asyncio.to_thread(self._forget, job_id, folder)
        self._changes.notify()

    def _forget(self, job_id: str, folder: Path) -> None:
        for store in (self._logs, self._metrics, self._events):
            store.delete(job_id)
        remove_tree(folder)

    def _clean_up_after(self, row: JobRow) -> None:
        """In a thread: end and take away what a job left that was lost with its emulator."""
        folders = self._layout.job(row)
        kill_marked(row.job.id, folders.root)
        wipe(folders)

    def _shown(self, row: JobRow) -> TrainingJob:
        """The job with the state of its checkpoints, which only the disk knows."""
        if row.started_at is None:
            return row.job
        found = self._layout.checkpoints(row)
        if not found:
            return row.job
        now_s = self._clock.now().timestamp()
        settled = row.job.is_finished or all(checkpoint.is_settled(now_s) for checkpoint in found)
        return row.job.model_copy(update={"checkpoint_sync_status": "COMPLETED" if settled else "SYNCING"})
