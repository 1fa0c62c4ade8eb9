"""Plans of simulated jobs: what they run (``Scenario``), their statuses over time, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_lines import LineSource
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
class Load:
    """Usage as fractions of a node's resources.

    ``node_factor`` scales the GPU utilization of single nodes. Growth values are fractions per second
    (leaks, filling disks). ``idle_after_s`` is when the GPUs go idle; they are idle during each
    (start, end) pair of ``breaks``, too. Nodes in ``vanishes`` have no samples after that many seconds.
    """

    gpu: float = 0.965
    gpu_noise: float = 0.022
    gpu_memory: float = 0.84
    gpu_memory_growth: float = 0.0
    cpu: float = 0.18
    host_memory: float = 0.31
    disk: float = 0.14
    disk_growth: float = 0.0
    node_factor: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    idle_after_s: float | None = None
    vanishes: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    breaks: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Saves:
    """A run's checkpoints: one every ``every`` steps, none later than ``until_s`` after the start.

    ``family`` names the checkpoint family; without one, checkpoints are only logged. ``write_s`` is the time
    to write one, ``sync_s`` the time to upload it.
    """

    family: str | None
    every: int
    write_s: float = 20.0
    sync_s: float = 75.0
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run: its curves, log, load, checkpoints and incidents (extra log lines).

    ``cache_share`` is the used fraction of the cache at the start, ``cache_growth`` its growth per second.
    """

    key: str
    curves: TrainingCurves
    log: Callable[[SimRun], Sequence[LineSource]]
    load: Load = field(default_factory=Load)
    saves: Saves | None = None
    incidents: tuple[Callable[[SimRun], Sequence[LineSource]], ...] = ()
    cache_share: float | None = None
    cache_growth: float = 1e-7


@dataclass(frozen=True, slots=True)
class Stage:
    """A status and its duration; None means it never ends."""

    status: JobStatus
    lasts_s: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """A job's end, ``after_s`` seconds into its run; 0 means at the run's own end."""

    outcome: JobStatus = JobStatus.COMPLETED
    after_s: float = 0.0
    message: str | None = None
    exit_code: int | None = 0


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A simulated job. ``born_s`` is when it was submitted, in seconds after the world's epoch."""

    name: str
    project: str
    user: str
    machine: str
    scenario: Scenario
    born_s: float
    stages: tuple[Stage, ...]
    end: End | None
    node_count: int = 1
    is_spot: bool = False
    priority: int = 0
    waiting_hint: str | None = None

    @property
    def availability(self) -> str:
        return "spot" if self.is_spot else "dedicated"


@dataclass(frozen=True, slots=True)
class SimRun:
    """Facts about a job for the generator of its log. Moments are script nanoseconds.

    ``run_ns`` is None if the job never runs. ``end_ns`` is when the script ends it, None if it does not.
    ``wall`` converts a script moment to wall time, for lines that contain their own timestamp.
    """

    plan: JobPlan
    machine: InstanceType
    seed: int
    curves: TrainingCurves
    deploy_ns: int
    run_ns: int | None
    end_ns: int | None
    outcome: JobStatus | None
    wall: Callable[[int], datetime]

    @property
    def nodes(self) -> range:
        return range(self.plan.node_count)

    @property
    def start_ns(self) -> int:
        """Start of the run, or of the deployment if the job never runs."""
        return self.deploy_ns if self.run_ns is None else self.run_ns

    @property
    def last_line_ns(self) -> int:
        """When the run stops logging: at its last step, when it hangs, or when the script ends it."""
        pace = self.curves.pace
        ends = [self.start_ns + pace.finished_ns(pace.total_steps)]
        if pace.halts_after_s is not None:
            ends.append(self.start_ns + int(pace.halts_after_s * NS_PER_S))
        return min([*ends, *([] if self.end_ns is None else [self.end_ns])])


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
    end = plan.end
    cut_short = end is not None and end.outcome in (JobStatus.STOPPED, JobStatus.PREEMPTED)
    if again and cut_short:
        end = End()
    phases, at_ns = [], created_ns
    for stage in plan.stages:
        phases.append(Phase(stage.status, at_ns, stage.message))
        lasts_s = _shorter_stage(stage, plan.scenario if cut_short else None) if again else stage.lasts_s
        if lasts_s is None:
            return phases
        at_ns += int(lasts_s * NS_PER_S)
    if end is not None:
        phases.append(Phase(end.outcome, at_ns, end.message, end.exit_code))
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
        return whole.curves.pace.duration_s + CLOSING_S
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
    return next((phase.at_ns for phase in phases if phase.status == status), None)
