"""A simulated job at a given moment: its life cycle, log, metrics and checkpoints, all computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from api_client.emulator import catalog
from api_client.emulator.backend import StoredFile, job_metrics
from api_client.emulator.fleet.checkpoint_files import FAMILIES, FileSpec
from api_client.emulator.fleet.clock import NS_PER_S, SimClock
from api_client.emulator.fleet.log_lines import LineSource
from api_client.emulator.fleet.logs import closing_lines, deploy_lines, stop_lines
from api_client.emulator.fleet.metrics import run_metrics, sample_times
from api_client.emulator.fleet.plans import STOPPED_EXIT_CODE, JobPlan, Phase, SimRun, moment_of
from api_client.emulator.fleet.training import TrainingCurves
from api_client.emulator.fleet.world import demo_id
from api_client.models import (
    Checkpoint,
    JobMetrics,
    JobStatus,
    ProjectSummary,
    QueueEvent,
    TrainingJob,
    User,
    is_finished,
)

DEFAULT_METRICS_S = 3_600
"""Default range of a running job's metrics: the last hour (the API does not specify it)."""
ERRORS_ONLY_S = 6.5
"""Only errors are logged in this many seconds before a job fails."""
SYNCING, COMPLETE, JOB_COMPLETE = "SYNCING", "COMPLETE", "COMPLETED"
"""Checkpoints report COMPLETE where jobs report COMPLETED."""
SPOT_HINT = "Waiting for capacity. Spot capacity of this GPU type would let the job start sooner."


@dataclass(frozen=True, slots=True)
class SimJobRecord:
    """The stored part of a simulated job: its plan, and what users did to it.

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
    """A checkpoint of the script: its name, its files, when it was written and when its upload is done."""

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
            code = None if moment_of(begun, JobStatus.RUNNING) is None else STOPPED_EXIT_CODE
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
            error_message=SPOT_HINT if now.status == JobStatus.PENDING else now.message if failed else None,
            checkpoint_sync_status=(SYNCING if is_syncing else JOB_COMPLETE) if saved else None,
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
        """Return all lines the job ever logs; the caller filters out lines in the future."""
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
        sources = deploy_lines(run)
        if run.run_ns is not None:
            # A failing run stops logging normally shortly before its last error.
            errors_ns = min(int(ERRORS_ONLY_S * NS_PER_S), (last.at_ns - run.start_ns) // 2)
            quiet_ns = last.at_ns - errors_ns if run.outcome == JobStatus.FAILED else last.at_ns + 1
            sources += [source.until(quiet_ns) if ends else source for source in scenario.log(run)]
        sources += [source for incident in scenario.incidents for source in incident(run)]
        sources += closing_lines(run)
        stopped_ns = self._entry.stopped_ns
        if stopped_ns is not None:
            return [*(source.until(stopped_ns) for source in sources), *stop_lines(run, stopped_ns)]
        return [source.until(last.at_ns + 1) for source in sources] if ends else sources

    def metrics(self, start_s: float | None, end_s: float | None, step_s: int | None) -> JobMetrics:
        """Return the metrics; without a range, the last hour or, once the job has ended, the whole run."""
        record, run_ns, plan = self.record(), self._run_ns, self._plan
        if run_ns is None:
            return job_metrics(record, {})
        first_ns, last_ns = self._sim_clock.to_wall(run_ns), self._sim_clock.to_wall(self._seen_until_ns)
        end_ns = last_ns if end_s is None else min(last_ns, int(end_s * NS_PER_S))
        if start_s is None:
            start_s = 0.0 if self.is_finished else end_ns / NS_PER_S - DEFAULT_METRICS_S
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
        for step in range(saves.every, curves.pace.steps_done(seen_ns - run_ns) + 1, saves.every):
            written_ns = run_ns + curves.pace.finished_ns(step) + int(saves.write_s * NS_PER_S)
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
                sync_status=SYNCING if step.synced_ns > self._now_ns else COMPLETE,
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
