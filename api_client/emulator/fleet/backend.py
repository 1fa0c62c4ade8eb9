"""The emulator backend for simulated jobs: everything is computed from a job's plan and the time.

Sample times are multiples of the step since the Unix epoch, so that overlapping answers agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from math import ceil
from typing import Any

from api_client.clock import SystemClock, epoch_ns, moment_at
from api_client.emulator import catalog
from api_client.emulator.backend import LogQuery, StoredFile, default_step_s, job_metrics
from api_client.emulator.fleet.clock import SimClock
from api_client.emulator.fleet.files import FAMILIES, FileSpec, cached_files
from api_client.emulator.fleet.logs import stop_lines, window
from api_client.emulator.fleet.plans import JobPlan, LineSource, Load, Phase, Scenario, SimRun, moment_of
from api_client.emulator.fleet.training import TrainingCurves, mix, track
from api_client.emulator.fleet.world import DEMO_SCRIPT, DemoScript, demo_id
from api_client.emulator.store.database import Database, Records
from api_client.emulator.store.stores import StoredProject
from api_client.models import (
    CachedFile,
    Checkpoint,
    InstanceType,
    JobMetrics,
    JobStatus,
    LogRecord,
    MetricSample,
    NodeSeries,
    ProjectSummary,
    QueueEvent,
    StorageMetrics,
    TrainingJob,
    User,
    is_finished,
)
from api_client.models.logs import NS_PER_S

SYNCING = "SYNCING"


BYTES_PER_MIB = 1024**2


def usage(load: Load, curves: TrainingCurves, node: int, at_s: float) -> tuple[float, ...]:
    """Return a node's usage ``at_s`` seconds after the run started, as fractions.

    In this order: GPU, the spread of single GPUs around that, GPU memory, CPU, memory, disk.
    """
    loading_s = curves.warmup_s * 0.7  # GPUs are idle until then, and ramp up after it
    ramp = min(1.0, max(0.0, at_s - loading_s) / max(1.0, curves.warmup_s - loading_s))
    loaded = 0.6 * min(1.0, at_s / max(1.0, loading_s)) + 0.4 * ramp
    warm, saves, slow = (
        min(1.0, at_s / max(1.0, curves.warmup_s)),
        curves.is_pausing(at_s),
        node in load.node_factor,
    )
    gpu, noise = load.gpu * ramp * load.node_factor.get(node, 1.0), load.gpu_noise
    cpu = load.cpu + 0.35 * (1 - ramp) + 0.1 * saves + 0.12 * slow
    if any(start <= at_s < end for start, end in load.idle):
        gpu, cpu = 0.004, 0.02
    elif curves.has_halted(at_s):
        # Ranks that wait in a collective spin, so a hang looks like full load (NCCL's behavior).
        gpu, cpu, noise = 0.997, 0.02, 0.003
    elif saves:
        gpu = 0.12
    memory = 0.006 + load.gpu_memory * loaded + load.gpu_memory_growth * at_s
    disk = 0.02 + load.disk * warm + load.disk_growth * at_s
    return (
        gpu,
        noise,
        min(FULL, memory),
        min(FULL, cpu),
        min(FULL, 0.03 + load.host_memory * warm),
        min(FULL, disk),
    )


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """The sample times of an answer, as wall times and as seconds since the run started (simulated clock)."""

    stamps: list[datetime]
    since_start_s: list[float]

    def until(self, end_s: float | None) -> SampleTimes:
        if end_s is None:
            return self
        count = sum(since < end_s for since in self.since_start_s)
        return SampleTimes(self.stamps[:count], self.since_start_s[:count])

    def samples(
        self, level: Sequence[float], stray: Sequence[float], seed: int, total: float = 1.0
    ) -> list[MetricSample]:
        """Return samples at ``level`` (fractions of ``total``), with noise up to ``stray`` unless idle."""
        drifts = track(seed, self.since_start_s, 20.0)
        digits = 4 if total < BYTES_PER_MIB else 0
        return [
            MetricSample(
                stamp, round(total * max(0.0, min(1.0, part + (by * drift if part > 0.01 else 0.0))), digits)
            )
            for stamp, part, by, drift in zip(self.stamps, level, stray, drifts, strict=True)
        ]

    def shares(self, level: Sequence[float], noise: float, seed: int, total: float) -> list[MetricSample]:
        """Return samples with noise in proportion to their level."""
        return self.samples(level, [noise * part for part in level], seed, total)

    def storage(self, share: Sequence[float], seed: int, total: int) -> StorageMetrics:
        used = self.shares(share, 0.001, seed, total)
        utilization = [
            MetricSample(sample.timestamp, round((sample.value or 0.0) / total, 5)) for sample in used
        ]
        return StorageMetrics.model_construct(usage_bytes=used, utilization=utilization)


def sample_times(
    sim_clock: SimClock, run_ns: int, start_ns: int, end_ns: int, step_s: int | None
) -> SampleTimes:
    """Build sample times at multiples of the step in ``start_ns <= wall <= end_ns``."""
    span_s = max(0.0, (end_ns - start_ns) / NS_PER_S)
    step = max(step_s or default_step_s(span_s), 1)
    step *= max(1, ceil(span_s / step / 2_000))
    step_ns = step * NS_PER_S
    walls = range(-(-start_ns // step_ns) * step_ns, end_ns + 1, step_ns)
    return SampleTimes(
        stamps=[moment_at(wall) for wall in walls],
        since_start_s=[(sim_clock.to_script(wall) - run_ns) / NS_PER_S for wall in walls],
    )


def node_series(
    scenario: Scenario, machine: InstanceType, node: int, seed: int, times: SampleTimes
) -> NodeSeries:
    seed = mix(seed, node) & 0xFFFF
    load, curves = scenario.load, scenario.curves
    used = [usage(load, curves, node, at_s) for at_s in times.since_start_s]
    gpu, strays, memory, cpu, host, disk = zip(*used, strict=True) if used else ((),) * 6
    gpus = [(rank, str(rank)) for rank in range(machine.gpu_count)]
    gpu_bytes = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    host_bytes = machine.memory_limit_mib * BYTES_PER_MIB
    disk_bytes = machine.gpu_count * 3_500_000_000_000 or 400_000_000_000
    return NodeSeries.model_construct(
        gpu_utilization={name: times.samples(gpu, strays, seed + 31 * rank) for rank, name in gpus},
        gpu_memory_usage_bytes={
            name: times.shares(memory, 0.004, seed + 57 * rank + 7, gpu_bytes) for rank, name in gpus
        },
        cpu_usage=times.shares(cpu, 0.2, seed + 11, machine.millicpu_limit / 1000),
        cpu_memory_usage_bytes=times.shares(host, 0.006, seed + 13, host_bytes),
        ephemeral_storage=times.storage(disk, seed + 17, disk_bytes),
    )


def run_metrics(
    scenario: Scenario,
    machine: InstanceType,
    node_count: int,
    seed: int,
    times: SampleTimes,
    job: TrainingJob,
) -> JobMetrics:
    """Build the metrics answer; nodes that no longer report are left out."""
    reported = {node: times.until(scenario.load.vanishes.get(node)) for node in range(node_count)}
    nodes = {
        node: node_series(scenario, machine, node, seed, own_times)
        for node, own_times in reported.items()
        if own_times.stamps or not times.stamps
    }
    cache = None
    if scenario.cache_share is not None:
        used = [min(0.98, scenario.cache_share + at * scenario.cache_growth) for at in times.since_start_s]
        # The default training cache is 1 TB (the product's storage page).
        cache = times.storage(used, seed & 0xFFFF, 1_000_000_000_000)
    return job_metrics(job, nodes, cache)


@dataclass(frozen=True, slots=True)
class SimJobRecord:
    """The stored part of a simulated job: its plan, and the user's changes.

    Times are nanoseconds on the simulated clock; ``again`` is True for a recreated job.
    """

    job_id: str
    plan: str
    seed: int
    created_ns: int
    again: bool
    priority: int
    availability: str
    stopped_ns: int | None = None
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class SavedStep:
    """A simulated checkpoint: its name, its files, when it was written and when its upload ends."""

    name: str
    files: tuple[FileSpec, ...]
    created_ns: int
    synced_ns: int


class SimJob:
    """A simulated job as of ``now_ns`` (on the simulated clock)."""

    def __init__(self, entry: SimJobRecord, plan: JobPlan, sim_clock: SimClock, now_ns: int) -> None:
        self._entry = entry
        self._plan = plan
        self._sim_clock = sim_clock
        self._now_ns = now_ns
        self._machine = catalog.instance(plan.machine)
        self._script = plan.phases(entry.created_ns, again=entry.again)
        self._life = self._script
        if (stopped_ns := entry.stopped_ns) is not None:
            begun = [phase for phase in self._script if phase.at_ns < stopped_ns] or self._script[:1]
            code = None if moment_of(begun, JobStatus.RUNNING) is None else 143  # SIGTERM
            self._life = [*begun, Phase(JobStatus.STOPPED, stopped_ns, "Stopped by a user", code)]
        self.phases = [phase for phase in self._life if phase.at_ns <= now_ns] or self._life[:1]
        """Phases entered so far, oldest first; never empty."""
        self.is_finished = is_finished(self.phases[-1].status)
        self._run_ns = moment_of(self.phases, JobStatus.RUNNING)
        self._seen_until_ns = min(now_ns, self._life[-1].at_ns) if self.is_finished else now_ns

    def record(self) -> TrainingJob:
        plan, entry, sim_clock = self._plan, self._entry, self._sim_clock
        now, project, saved = self.phases[-1], demo_id("project", plan.project), self.saved_steps()
        failed = now.status in (JobStatus.FAILED, JobStatus.DEPLOY_FAILED, JobStatus.PREEMPTED)
        hint = "Waiting for capacity. Spot capacity of this GPU type would let the job start sooner."
        is_syncing = any(step.synced_ns > self._now_ns for step in saved)
        return TrainingJob(
            id=entry.job_id,
            current_status=now.status,
            created_at=sim_clock.stamp(entry.created_ns),
            updated_at=sim_clock.stamp(now.at_ns),
            training_project_id=project,
            training_project=ProjectSummary(id=project, name=plan.project),
            instance_type=self._machine,
            name=plan.name,
            error_message=now.message if failed else hint if now.status == JobStatus.PENDING else None,
            checkpoint_sync_status=(SYNCING if is_syncing else "COMPLETED") if saved else None,
            priority=entry.priority,
            availability_model=entry.availability,
            user=User(email=plan.user),
            node_count=plan.nodes,
        )

    def events(self) -> list[QueueEvent]:
        return [
            QueueEvent(
                training_job_id=self._entry.job_id,
                training_job_name=self._plan.name,
                status=phase.status,
                created=self._sim_clock.stamp(phase.at_ns),
                event_message=phase.message,
                exit_code=phase.exit_code,
            )
            for phase in self.phases
        ]

    def sources(self) -> list[LineSource]:
        """Return the sources of all lines that the job ever logs; the caller drops future lines."""
        deploy_ns = moment_of(self._life, JobStatus.DEPLOYING)
        if deploy_ns is None:
            return []
        scenario, last = self._plan.scenario, self._script[-1]
        ends = is_finished(last.status)
        run = SimRun(
            plan=self._plan,
            machine=self._machine,
            seed=self._entry.seed,
            curves=scenario.curves,
            deploy_ns=deploy_ns,
            run_ns=moment_of(self._script, JobStatus.RUNNING),
            end_ns=last.at_ns if ends else None,
            outcome=last.status if ends else None,
            wall=self._sim_clock.stamp,
        )
        sources: list[LineSource] = []
        if run.run_ns is not None:
            # A failing run stops logging normally shortly before its last error.
            errors_ns = min(int(6.5 * NS_PER_S), (last.at_ns - run.start_ns) // 2)
            quiet_ns = last.at_ns - errors_ns if run.outcome == JobStatus.FAILED else last.at_ns + 1
            sources += [source.until(quiet_ns) if ends else source for source in scenario.log(run)]
        sources += [source for incident in scenario.incidents for source in incident(run)]
        stopped_ns = self._entry.stopped_ns
        if stopped_ns is not None:
            return [*(source.until(stopped_ns) for source in sources), *stop_lines(run, stopped_ns)]
        return [source.until(last.at_ns + 1) for source in sources] if ends else sources

    def metrics(self, start_s: float | None, end_s: float | None, step_s: int | None) -> JobMetrics:
        """Return the metrics; without a range, of the last hour or, for an ended job, of the whole run."""
        record, run_ns, plan = self.record(), self._run_ns, self._plan
        if run_ns is None:
            return job_metrics(record, {})
        first_ns, last_ns = self._sim_clock.to_wall(run_ns), self._sim_clock.to_wall(self._seen_until_ns)
        end_ns = last_ns if end_s is None else min(last_ns, int(end_s * NS_PER_S))
        if start_s is None:
            start_s = 0.0 if self.is_finished else end_ns / NS_PER_S - 3_600
        start_ns = max(first_ns, int(start_s * NS_PER_S))
        times = sample_times(self._sim_clock, run_ns, start_ns, end_ns, step_s)
        return run_metrics(plan.scenario, self._machine, plan.nodes, self._entry.seed, times, record)

    def saved_steps(self) -> list[SavedStep]:
        """Return the checkpoints written so far, oldest first."""
        run_ns, saves = self._run_ns, self._plan.scenario.saves
        if run_ns is None or saves is None or saves.family is None:
            return []
        curves, seen_ns, family = self._plan.scenario.curves, self._seen_until_ns, FAMILIES[saves.family]
        if saves.until_s is not None:
            seen_ns = min(seen_ns, run_ns + int(saves.until_s * NS_PER_S))
        saved = []
        for step in range(saves.every, curves.steps_done(seen_ns - run_ns) + 1, saves.every):
            written_ns = run_ns + curves.finished_ns(step) + int(saves.write_s * NS_PER_S)
            if written_ns > seen_ns:
                break
            synced_ns = written_ns + int(saves.sync_s * NS_PER_S)
            name, files = family.directory.format(step=step), _files(saves.family, step, curves)
            saved.append(SavedStep(name, files, written_ns, synced_ns))
        return saved

    def checkpoints(self) -> list[Checkpoint]:
        saves = self._plan.scenario.saves
        if saves is None or saves.family is None:
            return []
        family = FAMILIES[saves.family]
        return [
            Checkpoint(
                checkpoint_id=step.name,
                created_at=self._sim_clock.stamp(step.created_ns),
                checkpoint_type=family.kind,
                base_model=family.model.name,
                lora_adapter_config=family.adapter_config(),
                size_bytes=sum(file.size_bytes for file in step.files),
                sync_status=SYNCING if step.synced_ns > self._now_ns else "COMPLETE",  # jobs report COMPLETED
                training_job_id=self._entry.job_id,
            )
            for step in self.saved_steps()
        ]

    def checkpoint_files(self) -> list[StoredFile]:
        """Return the files of all checkpoints, named ``checkpoint/file`` unless the checkpoint is ``.``."""
        return [
            StoredFile(
                relative_name=file.name if step.name == "." else f"{step.name}/{file.name}",
                node_rank=file.node_rank,
                size_bytes=file.size_bytes,
                modified=self._sim_clock.stamp(step.created_ns).isoformat(),
                generate=file.read,
            )
            for step in self.saved_steps()
            for file in step.files
        ]


@lru_cache(maxsize=512)
def _files(family: str, step: int, curves: TrainingCurves) -> tuple[FileSpec, ...]:
    return tuple(FAMILIES[family].file_specs(step, curves))


class FleetBackend:
    """Simulated jobs on a clock of their own; a ``Backend``.

    Only user actions are stored. Logs, metrics and checkpoints are functions of the script and the time: the
    same request gets the same answer, and no answer has a timestamp in the future.
    """

    def __init__(
        self,
        database: Database,
        *,
        sim_clock: SimClock,
        now: Callable[[], datetime] | None = None,
        script: DemoScript = DEMO_SCRIPT,
    ) -> None:
        self._script = script
        self._sim_clock = sim_clock
        self._now = now or SystemClock().now
        self._plans = {plan.name: plan for plan in script.plans}
        self._projects = {project.id: project for project in script.projects}
        self._ended: dict[str, tuple[SimJobRecord, TrainingJob, int]] = {}
        self._jobs = Records(database, "fleet_jobs", SimJobRecord)
        jobs = {demo_id("job", plan.name): (mix(number), plan) for number, plan in enumerate(script.plans)}
        self._jobs.put_all(
            {
                job_id: SimJobRecord(
                    job_id=job_id,
                    plan=plan.name,
                    seed=number >> 33,
                    created_ns=sim_clock.epoch_ns + plan.born_ns,
                    again=False,
                    priority=plan.priority,
                    availability="spot" if plan.is_spot else "dedicated",
                )
                for job_id, (number, plan) in jobs.items()
                # Existing jobs are kept, with their changes; deleted ones are not created again.
                if job_id not in self._jobs
            }
        )

    def stored_projects(self, team_id: str) -> Iterator[StoredProject]:
        """Yield the projects of the demo jobs, for the caller to add to its own projects."""
        for plan in self._projects.values():
            born = self._sim_clock.stamp(self._sim_clock.epoch_ns - plan.age_ns)
            yield StoredProject(plan.id, plan.name, team_id, born, born)

    def owns(self, job_id: str) -> bool:
        entry = self._jobs.get(job_id)
        # A world created with another script may have jobs that this one lacks.
        return entry is not None and not entry.deleted and entry.plan in self._plans

    def jobs(self) -> Sequence[TrainingJob]:
        return [self.job(entry.job_id) for entry in self._jobs.all() if self.owns(entry.job_id)]

    def job(self, job_id: str) -> TrainingJob:
        """Return the job's current state; cached once it cannot change any more."""
        entry, now_ns = self._entry(job_id), self._now_ns()
        ended = self._ended.get(job_id)
        if ended is not None and ended[0] is entry and now_ns >= ended[2]:  # the clock may have been set back
            return ended[1]
        job = self._simulated(job_id)
        record = job.record()
        if job.is_finished and record.checkpoint_sync_status != SYNCING:
            self._ended[job_id] = (entry, record, now_ns)
        return record

    def spec(self, job_id: str) -> Mapping[str, Any]:
        """Return an empty spec, because no client sent one for a simulated job."""
        return {}

    def logs(self, job_id: str, query: LogQuery) -> list[LogRecord]:
        sim_clock = self._sim_clock
        lines = window(
            self._simulated(job_id).sources(),
            start_ns=sim_clock.to_script(query.start_ns - 1) + 1,
            end_ns=min(sim_clock.to_script(query.end_ns - 1), self._now_ns()) + 1,
            newest_first=query.direction == "desc",
            limit=query.limit,
            levels=query.levels,
        )
        return [
            LogRecord(
                timestamp=str(sim_clock.to_wall(stamp_ns)),
                message=source.text(index),
                replica=source.replica,
                request_id=None,
                level=source.level,
            )
            for stamp_ns, source, index in lines
        ]

    def log_is_complete(self, job_id: str) -> bool:
        now_ns, job = self._now_ns(), self._simulated(job_id)
        return job.is_finished and all(
            source.count_before(now_ns + 1)
            == source.count_before(now_ns + 3_600 * NS_PER_S)  # no job logs that long after its end
            for source in job.sources()
        )

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        return self._simulated(job_id).metrics(start_s, end_s, step_s)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        return self._simulated(job_id).checkpoints()

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        return self._simulated(job_id).checkpoint_files()

    def events(self, job_id: str) -> list[QueueEvent]:
        return self._simulated(job_id).events()

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        project = self._projects.get(project_id)
        tree = None if project is None else self._script.caches.get(project.name)
        return cached_files(tree, self._sim_clock.epoch_ns)

    async def stop(self, job_id: str) -> TrainingJob:
        if not self._simulated(job_id).is_finished:
            self._jobs.put(job_id, replace(self._entry(job_id), stopped_ns=self._now_ns()))
        return self.job(job_id)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        entry, now_ns = self._entry(job_id), self._now_ns()
        seed = mix(entry.seed, now_ns) >> 33
        again = replace(entry, job_id=new_job_id, seed=seed, created_ns=now_ns, again=True, stopped_ns=None)
        self._jobs.put(new_job_id, again)
        return self.job(new_job_id)

    async def delete(self, job_id: str) -> None:
        self._jobs.put(job_id, replace(self._entry(job_id), deleted=True))

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        entry = self._entry(job_id)
        priority = changes.get("priority", entry.priority)
        availability = changes.get("availability_model", entry.availability)
        self._jobs.put(job_id, replace(entry, priority=priority, availability=availability))
        return self.job(job_id)

    def _now_ns(self) -> int:
        return self._sim_clock.to_script(epoch_ns(self._now()))

    def _entry(self, job_id: str) -> SimJobRecord:
        entry = self._jobs.get(job_id)
        if entry is None or not self.owns(job_id):
            raise LookupError(f"no simulated job {job_id}")
        return entry

    def _simulated(self, job_id: str) -> SimJob:
        entry = self._entry(job_id)
        return SimJob(entry, self._plans[entry.plan], self._sim_clock, self._now_ns())


FULL = 0.995
