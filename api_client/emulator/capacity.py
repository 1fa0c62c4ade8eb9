"""GPU capacity of the organisation and its teams, and how much of it the jobs hold."""

from __future__ import annotations

from collections import defaultdict

from api_client.emulator.catalog import GPU_LIMITS, GpuLimit
from api_client.emulator.platform import HOLDING_STATUSES, Platform, Stores
from api_client.emulator.runner.node_queue import GpuPool
from api_client.emulator.store.projects import StoredProject
from api_client.models import (
    GpuCapacity,
    Team,
    TeamGpuCapacity,
    TrainingCapacity,
    TrainingJob,
)


def gpu_pools(stores: Stores, project_id: str, gpu_type: str) -> list[GpuPool]:
    """What a project's dedicated jobs of a GPU type draw on: the organisation's GPUs, the team's share.

    A type without a published limit is not limited. Descriptions write A100_40GB where the API has
    A100-40GB (API facts, 3.2).
    """
    listed_type = gpu_type.replace("_", "-")
    pools = [
        GpuPool(listed_type, limit.limit, is_fixed=True)
        for limit in GPU_LIMITS
        if limit.gpu_type == listed_type
    ]
    project = stores.projects.get(project_id)
    own = stores.teams.gpu_limits().get((project.team_id, listed_type)) if project else None
    if project is not None and own is not None:
        pools.append(GpuPool(f"{listed_type} of team {project.team_id}", own[0]))
    return pools


def gpus_of(job: TrainingJob) -> int:
    """All GPUs of a job."""
    return job.instance_type.gpu_count * (job.node_count or 1)


def training_capacity(platform: Platform) -> TrainingCapacity:
    """Limits and use, of the organisation and of each team."""
    projects = {project.id: project for project in platform.stores.projects.all()}
    holding = [job for job in platform.jobs() if job.current_status in HOLDING_STATUSES]
    used: dict[tuple[str, str, str], int] = defaultdict(int)
    for job in holding:
        gpu_type = job.instance_type.gpu_type or ""
        used[_team_of(job, projects), gpu_type, (job.availability_model or "dedicated").lower()] += gpus_of(
            job
        )
    teams = platform.stores.teams.all()
    return TrainingCapacity(
        gpu_capacities=[_organisation_capacity(limit, teams, used) for limit in GPU_LIMITS],
        team_gpu_capacities=[
            team_capacity(platform, team, limit, used) for team in teams for limit in GPU_LIMITS
        ],
    )


def team_capacity(
    platform: Platform, team: Team, limit: GpuLimit, used: dict[tuple[str, str, str], int]
) -> TeamGpuCapacity:
    """A team's share: its own limit if one was set, else the organisation's."""
    own = platform.stores.teams.gpu_limits().get((team.id, limit.gpu_type))
    dedicated = used.get((team.id, limit.gpu_type, "dedicated"), 0)
    spot = used.get((team.id, limit.gpu_type, "spot"), 0)
    return TeamGpuCapacity(
        team_id=team.id,
        team_name=team.name,
        gpu_type=limit.gpu_type,
        baseline=0,
        limit=own[0] if own else limit.limit,
        usage_count=dedicated + spot,
        dedicated_usage_count=dedicated,
        spot_usage_count=spot,
    )


def _organisation_capacity(
    limit: GpuLimit, teams: list[Team], used: dict[tuple[str, str, str], int]
) -> GpuCapacity:
    dedicated = sum(used.get((team.id, limit.gpu_type, "dedicated"), 0) for team in teams)
    spot = sum(used.get((team.id, limit.gpu_type, "spot"), 0) for team in teams)
    return GpuCapacity(
        gpu_type=limit.gpu_type,
        baseline=limit.baseline,
        limit=limit.limit,
        usage_count=dedicated + spot,
        dedicated_usage_count=dedicated,
        spot_usage_count=spot,
    )


def _team_of(job: TrainingJob, projects: dict[str, StoredProject]) -> str:
    project = projects.get(job.project_id)
    return project.team_id if project else ""
