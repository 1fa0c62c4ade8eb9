"""The emulator backend for simulated jobs: everything is computed from a job's plan and the time.

Sample times are multiples of the interval since the Unix epoch, so that overlapping responses agree.
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
from api_client.emulator.fleet.logs import select_lines, stop_lines
from api_client.emulator.fleet.plans import JobPlan, LineSource, Load, Phase, Scenario, SimRun, phase_start_ns
from api_client.emulator.fleet.training import TrainingCurves, drifting_noise, mix
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


def utilization_fractions(
    load: Load, curves: TrainingCurves, node: int, since_start_s: float
) -> tuple[float, ...]:
    """Return a node's utilization (0 to 1) ``since_start_s`` seconds after the run started.

    The order is: GPU, the spread of single GPUs around that mean, GPU memory, CPU, host memory, disk.
    """
    loading_s = curves.warmup_s * 0.7  # GPUs are idle until then, and ramp up after it
    gpu_ramp = min(1.0, max(0.0, since_start_s - loading_s) / max(1.0, curves.warmup_s - loading_s))
    memory_loaded = 0.6 * min(1.0, since_start_s / max(1.0, loading_s)) + 0.4 * gpu_ramp
    warmed_up, is_saving, is_slow = (
        min(1.0, since_start_s / max(1.0, curves.warmup_s)),
        curves.is_pausing(since_start_s),
        node in load.node_factor,
    )
    gpu, noise = load.gpu * gpu_ramp * load.node_factor.get(node, 1.0), load.gpu_noise
    cpu = load.cpu + 0.35 * (1 - gpu_ramp) + 0.1 * is_saving + 0.12 * is_slow
    if any(start <= since_start_s < end for start, end in load.idle):
        gpu, cpu = 0.004, 0.02
    elif curves.has_halted(since_start_s):
        # Ranks that wait in a collective spin, so a hang looks like full load (NCCL's behavior).
        gpu, cpu, noise = 0.997, 0.02, 0.003
    elif is_saving:
        gpu = 0.12
    gpu_memory = 0.006 + load.gpu_memory * memory_loaded + load.gpu_memory_growth * since_start_s
    disk = 0.02 + load.disk * warmed_up + load.disk_growth * since_start_s
    return (
        gpu,
        noise,
        min(MAX_UTILIZATION, gpu_memory),
        min(MAX_UTILIZATION, cpu),
        min(MAX_UTILIZATION, 0.03 + load.host_memory * warmed_up),
        min(MAX_UTILIZATION, disk),
    )


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """The sample times of a metrics response: wall times, and script seconds since the run started."""

    stamps: list[datetime]
    since_start_s: list[float]

    def until(self, end_s: float | None) -> SampleTimes:
        """Return the times before ``end_s`` seconds since the start; None: all."""
        if end_s is None:
            return self
        count = sum(since_start_s < end_s for since_start_s in self.since_start_s)
        return SampleTimes(self.stamps[:count], self.since_start_s[:count])

    def samples(
        self, fractions: Sequence[float], max_noise: Sequence[float], seed: int, total: float = 1.0
    ) -> list[MetricSample]:
        """Return samples near ``fractions`` of ``total``; idle samples (up to 1 %) have no noise."""
        noise = drifting_noise(seed, self.since_start_s, 20.0)
        digits = 4 if total < BYTES_PER_MIB else 0
        return [
            MetricSample(
                stamp,
                round(
                    total * max(0.0, min(1.0, fraction + (amplitude * offset if fraction > 0.01 else 0.0))),
                    digits,
                ),
            )
            for stamp, fraction, amplitude, offset in zip(
                self.stamps, fractions, max_noise, noise, strict=True
            )
        ]

    def samples_with_relative_noise(
        self, fractions: Sequence[float], noise: float, seed: int, total: float
    ) -> list[MetricSample]:
        """Return samples with noise that is proportional to their value."""
        return self.samples(fractions, [noise * fraction for fraction in fractions], seed, total)

    def storage_metrics(self, fractions: Sequence[float], seed: int, total: int) -> StorageMetrics:
        used_samples = self.samples_with_relative_noise(fractions, 0.001, seed, total)
        utilization = [
            MetricSample(sample.timestamp, round((sample.value or 0.0) / total, 5)) for sample in used_samples
        ]
        return StorageMetrics.model_construct(usage_bytes=used_samples, utilization=utilization)


def sample_times(
    sim_clock: SimClock, run_start_ns: int, start_ns: int, end_ns: int, step_s: int | None
) -> SampleTimes:
    """Build sample times in ``start_ns <= wall_ns <= end_ns``; long ranges get at most 2,000."""
    span_s = max(0.0, (end_ns - start_ns) / NS_PER_S)
    interval_s = max(step_s or default_step_s(span_s), 1)
    interval_s *= max(1, ceil(span_s / interval_s / 2_000))
    step_ns = interval_s * NS_PER_S
    wall_times_ns = range(-(-start_ns // step_ns) * step_ns, end_ns + 1, step_ns)
    return SampleTimes(
        stamps=[moment_at(wall_ns) for wall_ns in wall_times_ns],
        since_start_s=[(sim_clock.to_script(wall_ns) - run_start_ns) / NS_PER_S for wall_ns in wall_times_ns],
    )


def node_series(
    scenario: Scenario, machine: InstanceType, node: int, seed: int, times: SampleTimes
) -> NodeSeries:
    seed = mix(seed, node) & 0xFFFF
    load, curves = scenario.load, scenario.curves
    fractions = [
        utilization_fractions(load, curves, node, since_start_s) for since_start_s in times.since_start_s
    ]
    gpu, gpu_spreads, memory, cpu, host_memory, disk = (
        zip(*fractions, strict=True) if fractions else ((),) * 6
    )
    gpus = [(rank, str(rank)) for rank in range(machine.gpu_count)]
    gpu_bytes = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    host_bytes = machine.memory_limit_mib * BYTES_PER_MIB
    disk_bytes = machine.gpu_count * 3_500_000_000_000 or 400_000_000_000
    return NodeSeries.model_construct(
        gpu_utilization={name: times.samples(gpu, gpu_spreads, seed + 31 * rank) for rank, name in gpus},
        gpu_memory_usage_bytes={
            name: times.samples_with_relative_noise(memory, 0.004, seed + 57 * rank + 7, gpu_bytes)
            for rank, name in gpus
        },
        cpu_usage=times.samples_with_relative_noise(cpu, 0.2, seed + 11, machine.millicpu_limit / 1000),
        cpu_memory_usage_bytes=times.samples_with_relative_noise(host_memory, 0.006, seed + 13, host_bytes),
        ephemeral_storage=times.storage_metrics(disk, seed + 17, disk_bytes),
    )


def run_metrics(
    scenario: Scenario,
    machine: InstanceType,
    node_count: int,
    seed: int,
    times: SampleTimes,
    job: TrainingJob,
) -> JobMetrics:
    """Build the metrics response; nodes that no longer send samples are left out."""
    times_by_node = {node: times.until(scenario.load.vanishes.get(node)) for node in range(node_count)}
    nodes = {
        node: node_series(scenario, machine, node, seed, node_times)
        for node, node_times in times_by_node.items()
        if node_times.stamps or not times.stamps
    }
    cache = None
    if scenario.cache_share is not None:
        fractions = [
            min(0.98, scenario.cache_share + since_start_s * scenario.cache_growth)
            for since_start_s in times.since_start_s
        ]
        # The default training cache is 1 TB (the product's storage page).
        cache = times.storage_metrics(fractions, seed & 0xFFFF, 1_000_000_000_000)
    return job_metrics(job, nodes, cache)


@dataclass(frozen=True, slots=True)
class SimJobRecord:
    """The stored part of a simulated job: the name of its plan, and the user's changes.

    Times are nanoseconds of script time; ``again`` is True for a recreated job.
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
class SimCheckpoint:
    """A simulated checkpoint; the times are when it was written and when its upload ends."""

    name: str
    files: tuple[FileSpec, ...]
    created_ns: int
    synced_ns: int


class SimJob:
    """A simulated job as of ``now_ns`` (script time)."""

    def __init__(self, record: SimJobRecord, plan: JobPlan, sim_clock: SimClock, now_ns: int) -> None:
        self._record = record
        self._plan = plan
        self._sim_clock = sim_clock
        self._now_ns = now_ns
        self._instance_type = catalog.find_instance_type(plan.machine)
        self._planned_phases = plan.phases(record.created_ns, is_recreated=record.again)
        self._actual_phases = self._planned_phases
        if (stopped_ns := record.stopped_ns) is not None:
            entered_phases = [
                phase for phase in self._planned_phases if phase.at_ns < stopped_ns
            ] or self._planned_phases[:1]
            code = None if phase_start_ns(entered_phases, JobStatus.RUNNING) is None else 143  # SIGTERM
            self._actual_phases = [
                *entered_phases,
                Phase(JobStatus.STOPPED, stopped_ns, "Stopped by a user", code),
            ]
        self.phases = [
            phase for phase in self._actual_phases if phase.at_ns <= now_ns
        ] or self._actual_phases[:1]
        """Phases entered so far, oldest first; never empty."""
        self.is_finished = is_finished(self.phases[-1].status)
        self._run_start_ns = phase_start_ns(self.phases, JobStatus.RUNNING)
        self._data_end_ns = min(now_ns, self._actual_phases[-1].at_ns) if self.is_finished else now_ns

    def as_training_job(self) -> TrainingJob:
        plan, record, sim_clock = self._plan, self._record, self._sim_clock
        phase, project, checkpoints = (
            self.phases[-1],
            demo_id("project", plan.project),
            self.saved_checkpoints(),
        )
        failed = phase.status in (JobStatus.FAILED, JobStatus.DEPLOY_FAILED, JobStatus.PREEMPTED)
        hint = "Waiting for capacity. Spot capacity of this GPU type would let the job start sooner."
        is_syncing = any(checkpoint.synced_ns > self._now_ns for checkpoint in checkpoints)
        return TrainingJob(
            id=record.job_id,
            current_status=phase.status,
            created_at=sim_clock.stamp(record.created_ns),
            updated_at=sim_clock.stamp(phase.at_ns),
            training_project_id=project,
            training_project=ProjectSummary(id=project, name=plan.project),
            instance_type=self._instance_type,
            name=plan.name,
            error_message=phase.message if failed else hint if phase.status == JobStatus.PENDING else None,
            checkpoint_sync_status=(SYNCING if is_syncing else "COMPLETED") if checkpoints else None,
            priority=record.priority,
            availability_model=record.availability,
            user=User(email=plan.user),
            node_count=plan.nodes,
        )

    def events(self) -> list[QueueEvent]:
        return [
            QueueEvent(
                training_job_id=self._record.job_id,
                training_job_name=self._plan.name,
                status=phase.status,
                created=self._sim_clock.stamp(phase.at_ns),
                event_message=phase.message,
                exit_code=phase.exit_code,
            )
            for phase in self.phases
        ]

    def log_sources(self) -> list[LineSource]:
        """Return the sources of all lines that the job ever logs; the caller drops lines of the future."""
        deploy_ns = phase_start_ns(self._actual_phases, JobStatus.DEPLOYING)
        if deploy_ns is None:
            return []
        scenario, last_phase = self._plan.scenario, self._planned_phases[-1]
        has_end = is_finished(last_phase.status)
        run = SimRun(
            plan=self._plan,
            machine=self._instance_type,
            seed=self._record.seed,
            curves=scenario.curves,
            deploy_ns=deploy_ns,
            run_start_ns=phase_start_ns(self._planned_phases, JobStatus.RUNNING),
            end_ns=last_phase.at_ns if has_end else None,
            outcome=last_phase.status if has_end else None,
            wall=self._sim_clock.stamp,
        )
        log_sources: list[LineSource] = []
        if run.run_start_ns is not None:
            # A failing run stops logging normally shortly before its last error.
            error_margin_ns = min(int(6.5 * NS_PER_S), (last_phase.at_ns - run.start_ns) // 2)
            normal_log_end_ns = (
                last_phase.at_ns - error_margin_ns
                if run.outcome == JobStatus.FAILED
                else last_phase.at_ns + 1
            )
            log_sources += [
                source.until(normal_log_end_ns) if has_end else source for source in scenario.log(run)
            ]
        log_sources += [source for incident in scenario.incidents for source in incident(run)]
        stopped_ns = self._record.stopped_ns
        if stopped_ns is not None:
            return [*(source.until(stopped_ns) for source in log_sources), *stop_lines(run, stopped_ns)]
        return [source.until(last_phase.at_ns + 1) for source in log_sources] if has_end else log_sources

    def metrics(self, start_s: float | None, end_s: float | None, step_s: int | None) -> JobMetrics:
        """Return the metrics of a range in epoch seconds; default: the last hour, or a finished run."""
        job, run_start_ns, plan = self.as_training_job(), self._run_start_ns, self._plan
        if run_start_ns is None:
            return job_metrics(job, {})
        first_ns, last_ns = self._sim_clock.to_wall(run_start_ns), self._sim_clock.to_wall(self._data_end_ns)
        end_ns = last_ns if end_s is None else min(last_ns, int(end_s * NS_PER_S))
        if start_s is None:
            start_s = 0.0 if self.is_finished else end_ns / NS_PER_S - 3_600
        start_ns = max(first_ns, int(start_s * NS_PER_S))
        times = sample_times(self._sim_clock, run_start_ns, start_ns, end_ns, step_s)
        return run_metrics(plan.scenario, self._instance_type, plan.nodes, self._record.seed, times, job)

    def saved_checkpoints(self) -> list[SimCheckpoint]:
        """Return the checkpoints written so far, oldest first."""
        run_start_ns, saves = self._run_start_ns, self._plan.scenario.saves
        if run_start_ns is None or saves is None or saves.family is None:
            return []
        curves, last_save_ns, family = self._plan.scenario.curves, self._data_end_ns, FAMILIES[saves.family]
        if saves.until_s is not None:
            last_save_ns = min(last_save_ns, run_start_ns + int(saves.until_s * NS_PER_S))
        checkpoints = []
        for step in range(saves.every, curves.steps_done(last_save_ns - run_start_ns) + 1, saves.every):
            written_ns = run_start_ns + curves.finished_ns(step) + int(saves.write_s * NS_PER_S)
            if written_ns > last_save_ns:
                break
            synced_ns = written_ns + int(saves.sync_s * NS_PER_S)
            name, files = family.directory.format(step=step), _files(saves.family, step, curves)
            checkpoints.append(SimCheckpoint(name, files, written_ns, synced_ns))
        return checkpoints

    def checkpoints(self) -> list[Checkpoint]:
        saves = self._plan.scenario.saves
        if saves is None or saves.family is None:
            return []
        family = FAMILIES[saves.family]
        return [
            Checkpoint(
                checkpoint_id=checkpoint.name,
                created_at=self._sim_clock.stamp(checkpoint.created_ns),
                checkpoint_type=family.kind,
                base_model=family.model.name,
                lora_adapter_config=family.adapter_config(),
                size_bytes=sum(file.size_bytes for file in checkpoint.files),
                # Jobs report COMPLETED instead.
                sync_status=SYNCING if checkpoint.synced_ns > self._now_ns else "COMPLETE",
                training_job_id=self._record.job_id,
            )
            for checkpoint in self.saved_checkpoints()
        ]

    def checkpoint_files(self) -> list[StoredFile]:
        """Return the files of all checkpoints, named ``checkpoint/file``, or ``file`` in checkpoint ``.``."""
        return [
            StoredFile(
                relative_name=file.name if checkpoint.name == "." else f"{checkpoint.name}/{file.name}",
                node_rank=file.node_rank,
                size_bytes=file.size_bytes,
                modified=self._sim_clock.stamp(checkpoint.created_ns).isoformat(),
                generate=file.read,
            )
            for checkpoint in self.saved_checkpoints()
            for file in checkpoint.files
        ]


@lru_cache(maxsize=512)
def _files(family: str, step: int, curves: TrainingCurves) -> tuple[FileSpec, ...]:
    return tuple(FAMILIES[family].file_specs(step, curves))


class FleetBackend:
    """Simulated jobs on a simulated clock; a ``Backend``.

    Only user actions are stored. Logs, metrics and checkpoints are functions of the script and the time: the
    same request gets the same response, and no response has a timestamp in the future.
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
        self._final_states: dict[str, tuple[SimJobRecord, TrainingJob, int]] = {}
        """By job id: the stored record, the final state, and the script time (ns) when it was cached."""
        self._jobs = Records(database, "fleet_jobs", SimJobRecord)
        jobs = {demo_id("job", plan.name): (mix(number), plan) for number, plan in enumerate(script.plans)}
        self._jobs.put_all(
            {
                job_id: SimJobRecord(
                    job_id=job_id,
                    plan=plan.name,
                    seed=number >> 33,
                    created_ns=sim_clock.epoch_ns + plan.submitted_ns,
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
        """Yield the projects of the demo jobs, for the caller to store."""
        for project in self._projects.values():
            created_at = self._sim_clock.stamp(self._sim_clock.epoch_ns - project.age_ns)
            yield StoredProject(project.id, project.name, team_id, created_at, created_at)

    def owns(self, job_id: str) -> bool:
        record = self._jobs.get(job_id)
        # A data folder created with another script may have jobs without a plan in this script.
        return record is not None and not record.deleted and record.plan in self._plans

    def jobs(self) -> Sequence[TrainingJob]:
        return [self.job(record.job_id) for record in self._jobs.all() if self.owns(record.job_id)]

    def job(self, job_id: str) -> TrainingJob:
        """Return the job's current state, which is cached once it cannot change any more."""
        record, now_ns = self._record(job_id), self._now_ns()
        final_state = self._final_states.get(job_id)
        if (
            final_state is not None and final_state[0] is record and now_ns >= final_state[2]
        ):  # the clock may have been set back
            return final_state[1]
        sim_job = self._sim_job(job_id)
        job = sim_job.as_training_job()
        if sim_job.is_finished and job.checkpoint_sync_status != SYNCING:
            self._final_states[job_id] = (record, job, now_ns)
        return job

    def spec(self, job_id: str) -> Mapping[str, Any]:
        """Return an empty spec, because no client sent a spec for a simulated job."""
        return {}

    def logs(self, job_id: str, query: LogQuery) -> list[LogRecord]:
        sim_clock = self._sim_clock
        lines = select_lines(
            self._sim_job(job_id).log_sources(),
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
        now_ns, job = self._now_ns(), self._sim_job(job_id)
        return job.is_finished and all(
            source.count_before(now_ns + 1)
            == source.count_before(now_ns + 3_600 * NS_PER_S)  # no job logs that long after its end
            for source in job.log_sources()
        )

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        return self._sim_job(job_id).metrics(start_s, end_s, step_s)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        return self._sim_job(job_id).checkpoints()

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        return self._sim_job(job_id).checkpoint_files()

    def events(self, job_id: str) -> list[QueueEvent]:
        return self._sim_job(job_id).events()

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        project = self._projects.get(project_id)
        tree = None if project is None else self._script.caches.get(project.name)
        return cached_files(tree, self._sim_clock.epoch_ns)

    async def stop(self, job_id: str) -> TrainingJob:
        if not self._sim_job(job_id).is_finished:
            self._jobs.put(job_id, replace(self._record(job_id), stopped_ns=self._now_ns()))
        return self.job(job_id)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        record, now_ns = self._record(job_id), self._now_ns()
        seed = mix(record.seed, now_ns) >> 33
        recreated = replace(
            record, job_id=new_job_id, seed=seed, created_ns=now_ns, again=True, stopped_ns=None
        )
        self._jobs.put(new_job_id, recreated)
        return self.job(new_job_id)

    async def delete(self, job_id: str) -> None:
        self._jobs.put(job_id, replace(self._record(job_id), deleted=True))

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        record = self._record(job_id)
        priority = changes.get("priority", record.priority)
        availability = changes.get("availability_model", record.availability)
        self._jobs.put(job_id, replace(record, priority=priority, availability=availability))
        return self.job(job_id)

    def _now_ns(self) -> int:
        return self._sim_clock.to_script(epoch_ns(self._now()))

    def _record(self, job_id: str) -> SimJobRecord:
        record = self._jobs.get(job_id)
        if record is None or not self.owns(job_id):
            raise LookupError(f"no simulated job {job_id}")
        return record

    def _sim_job(self, job_id: str) -> SimJob:
        record = self._record(job_id)
        return SimJob(record, self._plans[record.plan], self._sim_clock, self._now_ns())


MAX_UTILIZATION = 0.995
"""The highest fraction that a node's CPU, memory or disk reaches."""
