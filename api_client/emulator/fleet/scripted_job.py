"""A scripted job at a given moment: its life cycle, log, metrics and checkpoints, all computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from api_client.emulator import catalog
from api_client.emulator.backend import StoredFile
from api_client.emulator.fleet.clock import NS_PER_S, SimClock
from api_client.emulator.fleet.file_bytes import checkpoint_file_specs, file_seed
from api_client.emulator.fleet.job_store import SimJobRecord
from api_client.emulator.fleet.log_generator import closing_lines, deploy_lines, stop_lines
from api_client.emulator.fleet.log_lines import LineSource, TruncatedLines
from api_client.emulator.fleet.metrics import grid, job_metrics
from api_client.emulator.fleet.plans import JobPlan, Phase, RunFacts, interrupted, moment_of, script_of
from api_client.emulator.fleet.scenarios.families import FAMILIES, family_number
from api_client.emulator.fleet.world import demo_id
from api_client.models import (
    Checkpoint,
    JobMetrics,
    JobStatus,
    ProjectSummary,
    TrainingJob,
    User,
    is_finished,
)

DEFAULT_METRICS_S = 3_600
"""Default range of a running job's metrics: the last hour (not specified by the API; facts, 2.2)."""
ERRORS_ONLY_S = 6.5
"""Only errors are logged in this many seconds before a job fails."""
SYNCING, COMPLETE, JOB_COMPLETE = "SYNCING", "COMPLETE", "COMPLETED"
"""Checkpoints report COMPLETE where jobs report COMPLETED (API facts, 1)."""


@dataclass(frozen=True, slots=True)
class SavedStep:
    """A checkpoint of the script: when it was written and when its upload is done."""

    step: int
    created_ns: int
    synced_ns: int


class SimJob:
    """A scripted job as of ``now_ns`` (script time)."""

    def __init__(self, entry: SimJobRecord, plan: JobPlan, sim_clock: SimClock, now_ns: int) -> None:
        self._entry = entry
        self._plan = plan
        self._sim_clock = sim_clock
        self._now_ns = now_ns
        self._machine = catalog.instance(plan.machine)
        script = script_of(plan, entry.created_ns, again=entry.again)
        self._life = interrupted(script, entry.stopped_ns)
        self._script = script

    @property
    def phases(self) -> list[Phase]:
        """Phases entered so far, oldest first; never empty."""
        return [self._life[0], *(phase for phase in self._life[1:] if phase.at_ns <= self._now_ns)]

    @property
    def is_finished(self) -> bool:
        return is_finished(self.phases[-1].status)

    def record(self) -> TrainingJob:
        plan, entry, sim_clock = self._plan, self._entry, self._sim_clock
        now = self.phases[-1]
        project = demo_id("project", plan.project)
        return TrainingJob(
            id=entry.job_id,
            current_status=now.status,
            created_at=sim_clock.stamp(entry.created_ns),
            updated_at=sim_clock.stamp(now.at_ns),
            training_project_id=project,
            training_project=ProjectSummary(id=project, name=plan.project),
            instance_type=self._machine,
            name=plan.name,
            error_message=self._message(now),
            checkpoint_sync_status=self._sync_status(),
            priority=entry.priority,
            availability_model=entry.availability,
            user=User(email=plan.user),
            node_count=plan.node_count,
        )

    def _message(self, now: Phase) -> str | None:
        if now.status == JobStatus.PENDING:
            return self._plan.waiting_hint
        failed = now.status in (JobStatus.FAILED, JobStatus.DEPLOY_FAILED, JobStatus.PREEMPTED)
        return now.message if failed else None

    def _sync_status(self) -> str | None:
        saved = self.saved_steps()
        if not saved:
            return None
        return SYNCING if any(each.synced_ns > self._now_ns for each in saved) else JOB_COMPLETE

    @property
    def _run_ns(self) -> int | None:
        return moment_of(self.phases, JobStatus.RUNNING)

    @property
    def _seen_until_ns(self) -> int:
        """The current moment, or the moment the job ended if that is earlier."""
        return min(self._now_ns, self._life[-1].at_ns) if self.is_finished else self._now_ns

    def sources(self) -> list[LineSource]:
        """Return all lines the job ever logs; the caller filters out lines in the future."""
        deploy_ns = moment_of(self._life, JobStatus.DEPLOYING)
        scenario = self._plan.scenario
        if deploy_ns is None or scenario is None:
            return []
        ends = is_finished(self._script[-1].status)
        run = RunFacts(
            title=self._plan.name,
            project=self._plan.project,
            machine=self._machine,
            node_count=self._plan.node_count,
            seed=self._entry.seed,
            deploy_ns=deploy_ns,
            run_ns=moment_of(self._script, JobStatus.RUNNING),
            end_ns=self._script[-1].at_ns if ends else None,
            outcome=self._script[-1].status if ends else None,
            wall=self._sim_clock.stamp,
        )
        told: list[LineSource] = deploy_lines(run, scenario.key)
        if run.run_ns is not None:
            quiet_ns = _silent_from(run, run.run_ns)
            narrated = scenario.log_generator.lines(run, run.run_ns, scenario.training_curves)
            told += (
                narrated if quiet_ns is None else [TruncatedLines(source, quiet_ns) for source in narrated]
            )
        for incident in scenario.incidents:
            told += incident(
                run, run.deploy_ns if run.run_ns is None else run.run_ns, scenario.training_curves
            )
        told += closing_lines(run)
        stopped_ns = self._entry.stopped_ns
        if stopped_ns is not None:
            return [*(TruncatedLines(source, stopped_ns) for source in told), *stop_lines(run, stopped_ns)]
        if run.end_ns is not None:
            return [TruncatedLines(source, run.end_ns + 1) for source in told]
        return told

    def metrics(self, start_s: float | None, end_s: float | None, step_s: int | None) -> JobMetrics:
        """Return the metrics; without a range, the last hour or, once the job has ended, the whole run."""
        record, run_ns, scenario = self.record(), self._run_ns, self._plan.scenario
        if run_ns is None or scenario is None:
            return JobMetrics(training_job=record)
        first_ns, last_ns = self._sim_clock.to_wall(run_ns), self._sim_clock.to_wall(self._seen_until_ns)
        end_ns = last_ns if end_s is None else min(last_ns, int(end_s * NS_PER_S))
        if start_s is not None:
            start_ns = max(first_ns, int(start_s * NS_PER_S))
        elif self.is_finished:
            start_ns = first_ns
        else:
            start_ns = max(first_ns, end_ns - DEFAULT_METRICS_S * NS_PER_S)
        return job_metrics(
            scenario.load,
            self._machine,
            self._plan.node_count,
            self._entry.seed,
            grid(self._sim_clock, run_ns, start_ns, end_ns, step_s),
            cache_share=scenario.cache_share,
            cache_growth=scenario.cache_growth,
            job=record,
        )

    def saved_steps(self) -> list[SavedStep]:
        """Return the checkpoints written so far, oldest first."""
        run_ns, scenario = self._run_ns, self._plan.scenario
        if run_ns is None or scenario is None or scenario.family is None or not scenario.save_every:
            return []
        pace, seen_ns = scenario.training_curves.pace, self._seen_until_ns
        done = pace.steps_done(seen_ns - run_ns)
        saved = []
        for step in range(scenario.save_every, done + 1, scenario.save_every):
            after_ns = pace.finished_ns(step) + int(scenario.write_s * NS_PER_S)
            if scenario.saves_end_s is not None and after_ns > scenario.saves_end_s * NS_PER_S:
                break
            created_ns = run_ns + after_ns
            if created_ns <= seen_ns:
                saved.append(SavedStep(step, created_ns, created_ns + int(scenario.sync_s * NS_PER_S)))
        return saved

    def _family(self) -> int:
        scenario = self._plan.scenario
        if scenario is None or scenario.family is None:
            raise LookupError(f"{self._plan.name} saves no checkpoints")
        return family_number(scenario.family)

    def checkpoints(self) -> list[Checkpoint]:
        saved = self.saved_steps()
        if not saved:
            return []
        number = self._family()
        family = FAMILIES[number]
        return [
            Checkpoint(
                checkpoint_id=family.directory.format(step=each.step),
                created_at=self._sim_clock.stamp(each.created_ns),
                checkpoint_type=family.kind,
                base_model=family.base_model,
                lora_adapter_config=family.adapter_config(),
                size_bytes=sum(file.size_bytes for file in checkpoint_file_specs(number, each.step)),
                sync_status=SYNCING if each.synced_ns > self._now_ns else COMPLETE,
                training_job_id=self._entry.job_id,
            )
            for each in saved
        ]

    def checkpoint_files(self) -> Iterator[StoredFile]:
        """Yield the files of all checkpoints; names start with the checkpoint's name unless that is ``.``."""
        saved = self.saved_steps()
        if not saved:
            return
        number = self._family()
        for each in saved:
            directory = FAMILIES[number].directory.format(step=each.step)
            modified = self._sim_clock.stamp(each.created_ns).isoformat()
            for place, file in enumerate(checkpoint_file_specs(number, each.step)):
                yield StoredFile(
                    relative_name=file.name if directory == "." else f"{directory}/{file.name}",
                    node_rank=file.node_rank,
                    size_bytes=file.size_bytes,
                    modified=modified,
                    synthetic_seed=file_seed(number, each.step, place),
                )


def _silent_from(run: RunFacts, run_ns: int) -> int | None:
    """Return when a failing run stops logging normally, shortly before its last error; None otherwise."""
    if run.end_ns is None or run.outcome != JobStatus.FAILED:
        return None
    return run.end_ns - min(int(ERRORS_ONLY_S * NS_PER_S), (run.end_ns - run_ns) // 2)
