"""Plans of simulated jobs: what they run (``Scenario``), their statuses over time, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple

from api_client.emulator.fleet.training import TrainingCurves
from api_client.models import WAITING_STATUSES, InstanceType, JobStatus
from api_client.models.logs import NS_PER_S


@dataclass(frozen=True, slots=True)
class LineSource:
    """Numbered lines of one node and level, in ascending order of script time (nanoseconds).

    ``count_before(time_ns)`` is the number of lines before a time; ``stamp(index)`` and ``text(index)`` are
    the time and the text of a line.
    """

    replica: str | None
    level: str | None
    count_before: Callable[[int], int]
    stamp: Callable[[int], int]
    text: Callable[[int], str]

    def until(self, end_ns: int) -> LineSource:
        """Return the source without its lines from ``end_ns`` on."""
        return replace(self, count_before=lambda at_ns: self.count_before(min(at_ns, end_ns)))


@dataclass(frozen=True, slots=True)
class Load:
    """Utilization of a node's resources as fractions; growth is per second (leaks, filling disks)."""

    gpu: float = 0.965
    gpu_noise: float = 0.022
    gpu_memory: float = 0.84
    gpu_memory_growth: float = 0.0
    cpu: float = 0.18
    host_memory: float = 0.31
    disk: float = 0.14
    disk_growth: float = 0.0
    node_factor: Mapping[int, float] = field(default_factory=dict)
    """Factor for the GPU utilization of single nodes, by rank."""

    idle: tuple[tuple[float, float], ...] = ()
    """Time ranges in which the GPUs are idle: start and end in seconds since the run started."""

    vanishes: Mapping[int, float] = field(default_factory=dict)
    """Nodes that stop sending samples, by rank: seconds after the start of the run."""


@dataclass(frozen=True, slots=True)
class Saves:
    """A run's checkpoints: saved every ``every`` steps, but not later than ``until_s`` after the start.

    ``family`` names the checkpoint family; if it is None, checkpoints are only logged. ``write_s`` is the
    time to write a checkpoint, ``sync_s`` the time to upload it.
    """

    every: int
    family: str | None = None
    write_s: float = 20.0
    sync_s: float = 75.0
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run: its curves, the log of its trainer, load, checkpoints, base model and incidents.

    ``incidents`` yield log lines of other programs, even after the trainer has ended.
    ``cache_share`` is the used fraction of the cache at the start, ``cache_growth`` its growth per second.
    """

    key: str
    curves: TrainingCurves
    log: Callable[[SimRun], Sequence[LineSource]]
    load: Load = field(default_factory=Load)
    saves: Saves | None = None
    model: str = ""
    incidents: tuple[Callable[[SimRun], Sequence[LineSource]], ...] = ()
    cache_share: float | None = None
    cache_growth: float = 1e-7


@dataclass(frozen=True, slots=True)
class End:
    """A job's end, ``after_s`` seconds after the start of its run; 0: when all steps are done."""

    outcome: JobStatus = JobStatus.COMPLETED
    after_s: float = 0.0
    message: str | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A status, the script time at which the job enters it, and the message and exit code of that event."""

    status: JobStatus
    at_ns: int
    message: str | None = None
    exit_code: int | None = None


class Stage(NamedTuple):
    """A status of a plan, its message, and its duration in seconds (None: it never ends)."""

    status: JobStatus
    message: str
    lasts_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A simulated job that entered status ``since`` ("ENDED": ended) ``ago_s`` before the world's epoch.

    The stage ``wait`` comes before the deployment; if its status is CREATED, it replaces that stage. A job
    without an ``end`` (``False`` in TOML) runs forever.
    """

    name: str
    project: str
    user: str
    machine: str
    scenario: Scenario
    ago_s: float
    since: str = JobStatus.RUNNING
    nodes: int = 1
    priority: int = 0
    is_spot: bool = False
    wait: Stage | None = None
    end: End | Literal[False] = field(default_factory=End)

    @property
    def submitted_ns(self) -> int:
        """When the job was submitted, in nanoseconds after the world's epoch (before it if negative)."""
        phases = self.phases(0, is_recreated=False)
        since_ns = phase_start_ns(phases, self.since)
        return -int(self.ago_s * NS_PER_S) - (phases[-1].at_ns if since_ns is None else since_ns)

    def phases(self, created_ns: int, *, is_recreated: bool) -> list[Phase]:
        """Return the phases of a job that no user stops; ``is_recreated`` is True for a recreated job.

        A recreated job runs until all steps are done, even if the original was stopped or preempted.
        """
        end = self.end
        if is_recreated and end and end.outcome in (JobStatus.STOPPED, JobStatus.PREEMPTED):
            end = End()
        phases, at_ns = [], created_ns
        for status, message, lasts_s in self._stages(end):
            phases.append(Phase(status, at_ns, message))
            if lasts_s is None:
                return phases
            max_s = lasts_s
            if is_recreated and status != JobStatus.RUNNING:  # faster: the node has the image and the weights
                max_s = 8.0 if status in WAITING_STATUSES else 30.0
            at_ns += int(min(lasts_s, max_s) * NS_PER_S)
        if not end:
            return phases
        exit_code = 0 if end.outcome == JobStatus.COMPLETED else end.exit_code
        return [*phases, Phase(end.outcome, at_ns, end.message, exit_code)]

    def _stages(self, end: End | Literal[False]) -> Iterator[Stage]:
        if self.wait is not None:
            yield self.wait
        if self.wait is None or self.wait.status != JobStatus.CREATED:
            yield Stage(JobStatus.CREATED, "Released; weights are mirrored", 22.0)
        if end and end.outcome == JobStatus.DEPLOY_FAILED:
            yield Stage(JobStatus.DEPLOYING, "Pulling the image", 95.0)
            return
        yield Stage(JobStatus.DEPLOYING, "Compute is provisioned, the image pulled", 145.0)
        full_run_s = self.scenario.curves.duration_s + 40.0  # for the last saves and clean-up
        yield Stage(JobStatus.RUNNING, "start_commands run", (end.after_s or full_run_s) if end else None)


@dataclass(frozen=True, slots=True)
class SimRun:
    """Facts about a job that its log is generated from. Times are nanoseconds of script time.

    ``run_start_ns`` is None if the job never runs. ``end_ns`` is when the plan ends it, None if it
    never ends. ``wall`` converts to wall time, for lines that contain their own timestamp.
    """

    plan: JobPlan
    machine: InstanceType
    seed: int
    curves: TrainingCurves
    deploy_ns: int
    run_start_ns: int | None
    end_ns: int | None
    outcome: JobStatus | None
    wall: Callable[[int], datetime]

    @property
    def nodes(self) -> range:
        return range(self.plan.nodes)

    @property
    def start_ns(self) -> int:
        """Start of the run, or of the deployment if the job never runs."""
        return self.deploy_ns if self.run_start_ns is None else self.run_start_ns

    @property
    def deployment_s(self) -> float:
        """Duration of the deployment."""
        return (self.start_ns - self.deploy_ns) / NS_PER_S

    @property
    def last_line_ns(self) -> int:
        """When the run stops logging: at its last step, when it hangs, or when the plan ends it."""
        curves = self.curves
        last_ns = self.start_ns + min(curves.finished_ns(curves.steps), curves.halts_after_s * NS_PER_S)
        return int(last_ns if self.end_ns is None else min(last_ns, self.end_ns))


def phase_start_ns(phases: Sequence[Phase], status: str) -> int | None:
    """Return the script time of the first phase with a status; None if there is no such phase."""
    return next((phase.at_ns for phase in phases if phase.status == status), None)
