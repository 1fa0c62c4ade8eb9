"""What the script says of a job: what it is, how it goes through its life, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_lines import LineSource
from api_client.emulator.fleet.metrics import Load
from api_client.emulator.fleet.training import Course
from api_client.models import InstanceType, JobStatus, QueueEvent

STOPPED_EXIT_CODE = 143
"""128 + SIGTERM: what a stopped process group exits with."""
CLOSING_S = 40.0
"""From a run's last step to its exit: last saves, clean-up."""
RECREATED_WAIT_S = 8.0
RECREATED_DEPLOY_S = 30.0
"""A job started again finds its image and weights where the first one left them."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a narrator is told of the job whose lines it tells. Moments are script nanoseconds.

    ``run_ns`` is None if the job never runs; ``end_ns`` is when the script ends it, if it does;
    ``wall`` gives the wall time of a script moment, for lines that carry a stamp of their own.
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


class Narrator(Protocol):
    """A trainer's way of logging."""

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """Everything it logs from the moment it runs."""
        ...


Incident = Callable[[RunFacts, int, Course], Sequence[LineSource]]
"""Further lines of a run in trouble; called like ``Narrator.lines``."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """How a run goes: its course, its words, its load, and what it saves.

    ``family`` names the checkpoints' family and ``save_every`` counts steps; ``sync_s`` is how long
    the upload of one checkpoint takes, ``write_s`` how long writing it does. No checkpoint is written
    from ``saves_end_s`` seconds after the start on. ``cache_share`` is the part of the cache in use when the
    run starts, ``cache_growth`` what comes on top in a second.
    """

    key: str
    course: Course
    narrator: Narrator
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
    """A status and how long it lasts; None lasts for good."""

    status: JobStatus
    lasts_s: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job of the script. ``born_s`` is when it was submitted, in seconds after the world's epoch."""

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
    """A status that a job takes on at a script moment."""

    status: JobStatus
    at_ns: int
    message: str | None = None
    exit_code: int | None = None

    def event(self, job_id: str, job_name: str, created: datetime) -> QueueEvent:
        """The phase as the queue context lists it."""
        return QueueEvent(
            training_job_id=job_id,
            training_job_name=job_name,
            status=self.status,
            created=created,
            event_message=self.message,
            exit_code=self.exit_code,
        )


def script_of(plan: JobPlan, created_ns: int, *, again: bool) -> list[Phase]:
    """The phases a job goes through if nobody interferes; ``again`` for one that was recreated."""
    phases, at_ns = [], created_ns
    cut_short = plan.outcome in (JobStatus.STOPPED, JobStatus.PREEMPTED)
    for stage in plan.stages:
        phases.append(Phase(stage.status, at_ns, stage.message))
        lasts_s = _again(stage, plan.scenario if cut_short else None) if again else stage.lasts_s
        if lasts_s is None:
            return phases
        at_ns += int(lasts_s * NS_PER_S)
    if again and cut_short:
        phases.append(Phase(JobStatus.COMPLETED, at_ns, None, 0))
    elif plan.outcome is not None:
        phases.append(Phase(plan.outcome, at_ns, plan.message, plan.exit_code))
    return phases


def _again(stage: Stage, whole: Scenario | None) -> float | None:
    """How long a stage lasts the second time; ``whole`` runs to its own end instead of being cut short."""
    if stage.status in (JobStatus.PENDING, JobStatus.QUEUED):
        return RECREATED_WAIT_S
    if stage.status in (JobStatus.CREATED, JobStatus.DEPLOYING) and stage.lasts_s is not None:
        return min(stage.lasts_s, RECREATED_DEPLOY_S)
    if stage.status == JobStatus.RUNNING and whole is not None:
        return whole.course.pace.duration_s + CLOSING_S
    return stage.lasts_s


def interrupted(phases: Sequence[Phase], stopped_ns: int | None) -> list[Phase]:
    """The phases of a job that somebody stopped: what would have come after that moment never comes."""
    if stopped_ns is None:
        return list(phases)
    kept = [*phases[:1], *(phase for phase in phases[1:] if phase.at_ns < stopped_ns)]
    ran = any(phase.status == JobStatus.RUNNING for phase in kept)
    exit_code = STOPPED_EXIT_CODE if ran else None
    return [*kept, Phase(JobStatus.STOPPED, stopped_ns, "Stopped by a user", exit_code)]


def moment_of(phases: Sequence[Phase], status: JobStatus) -> int | None:
    """When a job takes on that status, or None if it never does."""
    return next((phase.at_ns for phase in phases if phase.status == status), None)
