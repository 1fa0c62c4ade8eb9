"""Builders for the jobs of the demo world: running, finished and upcoming; and its users and machines."""

from __future__ import annotations

from api_client.emulator.fleet.plans import CLOSING_S, JobPlan, Scenario, Stage
from api_client.models import JobStatus

ADA, GRACE, KAI, MIRA, TOMAS = (f"{name}@demo.example" for name in ("ada", "grace", "kai", "mira", "tomas"))
H100X8, H100 = "h100-8-208x1872", "h100-1-26x234"
H200X8 = "h200-8-208x1872"
A10G, L4, L4X4 = "a10g-1-8x32", "l4-1-4x16", "l4-4-48x192"
CPU_SMALL, CPU_LARGE = "cpu-4x16", "cpu-64x256"
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0

CREATED_S = 22.0
DEPLOYING_S = 145.0
SPOT_HINT = "Waiting for capacity. Spot capacity of this GPU type would let the job start sooner."


def total_duration_s(scenario: Scenario) -> float:
    """Return the time from a run's start to its exit."""
    return scenario.training_curves.pace.duration_s + CLOSING_S


def _life(runs_s: float | None, waited_s: float = 0.0) -> tuple[Stage, ...]:
    waited = (Stage(JobStatus.PENDING, waited_s, "Waiting for GPU capacity"),) if waited_s else ()
    return (
        *waited,
        Stage(JobStatus.CREATED, CREATED_S, "Released; weights are mirrored"),
        Stage(JobStatus.DEPLOYING, DEPLOYING_S, "Compute is provisioned, the image pulled"),
        Stage(JobStatus.RUNNING, runs_s, "start_commands run"),
    )


def running(
    name: str,
    project: str,
    machine: str,
    node_count: int,
    user: str,
    scenario: Scenario,
    *,
    since_s: float,
    lasts_s: float | None = 0.0,
    outcome: JobStatus = JobStatus.COMPLETED,
    message: str | None = None,
    exit_code: int = 0,
    priority: int = 0,
    availability: str = "dedicated",
) -> JobPlan:
    """Build a job that started to run ``since_s`` before the world begins.

    ``lasts_s`` 0 means that it runs to its own end; None means that it never ends.
    """
    return JobPlan(
        key=name,
        project=project,
        name=name,
        machine=machine,
        node_count=node_count,
        user=user,
        born_s=-(since_s + CREATED_S + DEPLOYING_S),
        stages=_life(total_duration_s(scenario) if lasts_s == 0 else lasts_s),
        scenario=scenario,
        outcome=None if lasts_s is None else outcome,
        message=message,
        exit_code=exit_code,
        priority=priority,
        availability=availability,
    )


def finished(
    name: str,
    project: str,
    machine: str,
    node_count: int,
    user: str,
    scenario: Scenario,
    *,
    ago_s: float,
    ran_s: float = 0.0,
    waited_s: float = 0.0,
    outcome: JobStatus = JobStatus.COMPLETED,
    message: str | None = None,
    exit_code: int = 0,
    availability: str = "dedicated",
) -> JobPlan:
    """Build a job that ended ``ago_s`` before the world begins.

    ``ran_s`` 0 means that it ran to its own end.
    """
    runs_s = ran_s or total_duration_s(scenario)
    return JobPlan(
        key=name,
        project=project,
        name=name,
        machine=machine,
        node_count=node_count,
        user=user,
        born_s=-(ago_s + runs_s + CREATED_S + DEPLOYING_S + waited_s),
        stages=_life(runs_s, waited_s),
        scenario=scenario,
        outcome=outcome,
        message=message,
        exit_code=exit_code,
        availability=availability,
    )


def upcoming(
    name: str,
    project: str,
    machine: str,
    node_count: int,
    user: str,
    scenario: Scenario,
    stages: tuple[Stage, ...],
    *,
    since_s: float,
    priority: int = 0,
    availability: str = "dedicated",
    hint: str | None = None,
) -> JobPlan:
    """Build a job that has not started yet; ``stages`` begin ``since_s`` before the world does."""
    ends = stages[-1].lasts_s is not None
    return JobPlan(
        key=name,
        project=project,
        name=name,
        machine=machine,
        node_count=node_count,
        user=user,
        born_s=-since_s,
        stages=(*stages, Stage(JobStatus.RUNNING, total_duration_s(scenario))) if ends else stages,
        scenario=scenario,
        outcome=JobStatus.COMPLETED if ends else None,
        exit_code=0,
        priority=priority,
        availability=availability,
        waiting_hint=hint,
    )
