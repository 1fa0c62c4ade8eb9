"""Plans of scripted jobs: what they run (``Scenario``), their statuses over time, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_lines import LineSource
from api_client.emulator.fleet.metrics import Load
from api_client.emulator.fleet.training import TrainingCurves
from api_client.models import InstanceType, JobStatus, QueueEvent

STOPPED_EXIT_CODE = 143
"""Exit code of a stopped process group: 128 + SIGTERM."""
CLOSING_S = 40.0
"""Seconds between a run's last step and its exit, for the last saves and clean-up."""
RECREATED_WAIT_S = 8.0
RECREATED_DEPLOY_S = 30.0
"""A recreated job deploys faster: the image and weights are already on the node."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about a job for the generator of its log. Moments are script nanoseconds.

    ``run_ns`` is None if the job never runs. ``end_ns`` is when the script ends it, None if it does not.
    ``wall`` converts a script moment to wall time, for lines that contain their own timestamp.
    """

    title: str
    project: str
    machine: InstanceType
    node_count: int
    seed: int
    deploy_ns: int
    run_ns: int | None
    end_ns: int | None
    outcome: JobStatus | None
    wall: Callable[[int], datetime]


class LogGenerator(Protocol):
    """The log style of a trainer."""

    def lines(self, run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
        """Return all lines logged from the moment the job runs."""
        ...


Incident = Callable[[RunFacts, int, TrainingCurves], Sequence[LineSource]]
"""Extra log lines of a run with problems; called like ``LogGenerator.lines``."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run: its training curves, log style, load and checkpoints.

    ``family`` names the checkpoint family and ``save_every`` is in steps. ``write_s`` is the time to
    write a checkpoint, ``sync_s`` the time to upload it. No checkpoint is written later than
    ``saves_end_s`` seconds after the start. ``cache_share`` is the used fraction of the cache at the
    start, ``cache_growth`` its growth per second.
    """

    key: str
    training_curves: TrainingCurves
    log_generator: LogGenerator
    load: Load
    family: str | None = None
    save_every: int = 0
    write_s: float = 20.0
    sync_s: float = 75.0
    incidents: tuple[Incident, ...] = ()
    cache_share: float | None = None
    cache_growth: float = 1e-7
    saves_end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A status and its duration; None means it never ends."""

    status: JobStatus
    lasts_s: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A scripted job. ``born_s`` is when it was submitted, in seconds after the world's epoch."""

    key: str
    project: str
    name: str
    machine: str
    node_count: int
    user: str
    born_s: float
    stages: tuple[Stage, ...]
    scenario: Scenario | None
    outcome: JobStatus | None = None
    message: str | None = None
    exit_code: int | None = None
    priority: int = 0
    availability: str = "dedicated"
    waiting_hint: str | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A status and the script moment at which the job enters it."""

    status: JobStatus
    at_ns: int
    message: str | None = None
    exit_code: int | None = None

    def event(self, job_id: str, job_name: str, created: datetime) -> QueueEvent:
        return QueueEvent(
            training_job_id=job_id,
            training_job_name=job_name,
            status=self.status,
            created=created,
            event_message=self.message,
            exit_code=self.exit_code,
        )


def script_of(plan: JobPlan, created_ns: int, *, again: bool) -> list[Phase]:
    """Return the phases of a job that no user changes; ``again`` is True for a recreated job."""
    phases, at_ns = [], created_ns
    cut_short = plan.outcome in (JobStatus.STOPPED, JobStatus.PREEMPTED)
    for stage in plan.stages:
        phases.append(Phase(stage.status, at_ns, stage.message))
        lasts_s = _shorter_stage(stage, plan.scenario if cut_short else None) if again else stage.lasts_s
        if lasts_s is None:
            return phases
        at_ns += int(lasts_s * NS_PER_S)
    if again and cut_short:
        phases.append(Phase(JobStatus.COMPLETED, at_ns, None, 0))
    elif plan.outcome is not None:
        phases.append(Phase(plan.outcome, at_ns, plan.message, plan.exit_code))
    return phases


def _shorter_stage(stage: Stage, whole: Scenario | None) -> float | None:
    """Return a stage's duration in a recreated job.

    If ``whole`` is given, the run lasts to its own end instead of being cut short.
    """
    if stage.status in (JobStatus.PENDING, JobStatus.QUEUED):
        return RECREATED_WAIT_S
    if stage.status in (JobStatus.CREATED, JobStatus.DEPLOYING) and stage.lasts_s is not None:
        return min(stage.lasts_s, RECREATED_DEPLOY_S)
    if stage.status == JobStatus.RUNNING and whole is not None:
        return whole.training_curves.pace.duration_s + CLOSING_S
    return stage.lasts_s


def interrupted(phases: Sequence[Phase], stopped_ns: int | None) -> list[Phase]:
    """Return the phases of a job stopped at ``stopped_ns``: later ones are replaced by STOPPED."""
    if stopped_ns is None:
        return list(phases)
    kept = [*phases[:1], *(phase for phase in phases[1:] if phase.at_ns < stopped_ns)]
    ran = any(phase.status == JobStatus.RUNNING for phase in kept)
    exit_code = STOPPED_EXIT_CODE if ran else None
    return [*kept, Phase(JobStatus.STOPPED, stopped_ns, "Stopped by a user", exit_code)]


def moment_of(phases: Sequence[Phase], status: JobStatus) -> int | None:
    """Return when a job enters that status, or None if it never does."""
    return next((phase.at_ns for phase in phases if phase.status == status), None)
