"""Routes of the account: teams, secrets, instance types, prices, the bill, the key's owner, GPU capacity.

A node is billed by the minute while its job runs. As in the official dashboard, the bill is updated hourly,
so it lacks the current hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from api_client import routes
from api_client.emulator.catalog import GPU_LIMITS, INSTANCE_TYPES, PRICES, PRICES_USD_PER_MINUTE
from api_client.emulator.platform import OCCUPYING_STATUSES, SPOT, Platform
from api_client.emulator.responses import invalid, not_found
from api_client.emulator.routes.calls import DATETIME_ADAPTER, TEXT_ADAPTER, Call, api_route, starlette_routes
from api_client.emulator.store.stores import TeamGpuLimit
from api_client.models import (
    ActiveJobAtSubmit,
    BillableResource,
    BilledItem,
    CapacityAtSubmit,
    DailyUsage,
    GpuCapacity,
    JobStatus,
    PendingJobAhead,
    QueueContext,
    QueueEvent,
    Team,
    TeamGpuCapacity,
    TrainingCapacity,
    TrainingJob,
    TrainingUsage,
    UsageSummary,
)
from api_client.models.account import EMULATOR_USER_EMAIL
from api_client.vocabulary import TRAINING_JOB


def _teams(call: Call) -> Any:
    name = call.parameters.get("name", TEXT_ADAPTER)
    return {"teams": [team for team in call.platform.stores.teams.all() if name in (None, "", team.name)]}


async def _upsert_secret(call: Call) -> Any:
    team, name, value = (
        call.team,
        call.parameters.required("name", TEXT_ADAPTER),
        call.parameters.values.get("value"),
    )
    if not isinstance(value, str):  # an empty value is valid
        raise invalid("value must be a string")
    return call.platform.stores.secrets.upsert(team, name, value, call.platform.now())


def _delete_secret(call: Call) -> Any:
    name = call.path_parameters["name"]
    if not call.platform.stores.secrets.delete(call.team, name):
        raise not_found("Secret", name)
    return {"name": name}


def _bill(call: Call) -> Any:
    """Return the bill of a range; a time without a timezone is UTC."""
    dates = (call.parameters.required(name, DATETIME_ADAPTER) for name in ("start_date", "end_date"))
    start, end = (date if date.tzinfo else date.replace(tzinfo=UTC) for date in dates)
    return usage_summary(call.platform, start, end)


async def _set_limit(call: Call) -> Any:
    team = call.platform.team(call.parameters.required("team_id", TEXT_ADAPTER))
    gpu_type = call.parameters.required("gpu_type", TEXT_ADAPTER)
    max_gpus = call.parameters.integer("max_gpus", maximum=100_000)
    if gpu_type not in GPU_LIMITS:
        raise not_found("GPU type", gpu_type)
    if max_gpus is not None:
        call.platform.stores.teams.set_gpu_limit(team.id, gpu_type, max_gpus, call.platform.now())
    team_capacity = next(
        capacity
        for capacity in training_capacity(call.platform).team_gpu_capacities
        if (capacity.team_id, capacity.gpu_type) == (team.id, gpu_type)
    )
    return {"team_gpu_capacity": team_capacity}


async def _preempt(call: Call) -> Any:
    return {"training_job": await call.platform.preempt_job(call.path_parameters["job_id"])}


def training_capacity(platform: Platform) -> TrainingCapacity:
    used_gpus: Counter[tuple[str, str, bool]] = Counter()
    for job in platform.jobs():
        if job.current_status in OCCUPYING_STATUSES:
            team_id = platform.stores.team_of(job.project_id)
            is_spot = (job.availability_model or "").lower() == SPOT
            used_gpus[team_id, job.instance_type.gpu_type or "", is_spot] += job.total_gpus
    teams = platform.stores.teams.all()

    def limit_of(team: Team, gpu_type: str) -> int:
        team_limit = platform.stores.teams.gpu_limit(team.id, gpu_type)
        return GPU_LIMITS[gpu_type][1] if team_limit is None else team_limit.max_gpus

    def usage(gpu_type: str, *of_teams: Team) -> dict[str, int]:
        dedicated, spot = (
            sum(used_gpus[team.id, gpu_type, is_spot] for team in of_teams) for is_spot in (False, True)
        )
        counts = {"dedicated_usage_count": dedicated, "spot_usage_count": spot}
        return {**counts, "usage_count": dedicated + spot}

    return TrainingCapacity(
        gpu_capacities=[
            GpuCapacity(
                gpu_type=gpu_type,
                baseline=baseline,
                limit=limit,
                **usage(gpu_type, *teams),
            )
            for gpu_type, (baseline, limit) in GPU_LIMITS.items()
        ],
        team_gpu_capacities=[
            TeamGpuCapacity(
                team_id=team.id,
                team_name=team.name,
                gpu_type=gpu_type,
                baseline=0,
                limit=limit_of(team, gpu_type),
                **usage(gpu_type, team),
            )
            for team in teams
            for gpu_type in GPU_LIMITS
        ],
    )


def queue_context(platform: Platform, job_id: str) -> QueueContext:
    """Build the queue context: jobs active and pending ahead at submission, and the job's status changes.

    The API reports exit codes only in these status changes.
    """
    target_job = platform.job_by_id(job_id)
    now = platform.now()
    submitted_at = target_job.created_at or now
    gpu_type = target_job.instance_type.gpu_type or ""
    target_events = platform.backend_of(job_id).events(job_id)
    released_at = next((event.created for event in target_events if event.status == JobStatus.CREATED), None)
    active_jobs, jobs_ahead = [], []
    for other in platform.jobs():
        if other.id == job_id or (other.instance_type.gpu_type or "") != gpu_type:
            continue
        events = platform.backend_of(other.id).events(other.id)
        past_events = [
            event for event in events if event.created is not None and event.created <= submitted_at
        ]
        fields: dict[str, Any] = {
            "training_job_id": other.id,
            "training_job_name": other.name,
            "instance_type_name": other.instance_type.name,
        }
        if past_events and past_events[-1].status in OCCUPYING_STATUSES:
            fields |= {"status_at_submit": past_events[-1].status, "status_set_at": past_events[-1].created}
            fields |= {"total_gpus": other.total_gpus, "workload_plane_name": "emulator"}
            active_jobs.append(ActiveJobAtSubmit(**fields))
        elif past_events and past_events[-1].status == JobStatus.PENDING and _is_ahead(other, target_job):
            fields |= {"requested_gpus": other.total_gpus, "priority": other.priority or 0}
            jobs_ahead.append(PendingJobAhead(**fields, submitted_at=other.created_at or submitted_at))
    pending_s = None if released_at is None else int((released_at - submitted_at).total_seconds())
    limit = TeamGpuLimit(GPU_LIMITS[gpu_type][1], submitted_at) if gpu_type in GPU_LIMITS else None
    team_limit = platform.stores.teams.gpu_limit(platform.stores.team_of(target_job.project_id), gpu_type)
    return QueueContext(
        target_job_id=job_id,
        target_job_name=target_job.name,
        gpu_type=gpu_type,
        requested_gpus=target_job.total_gpus,
        submitted_at=submitted_at,
        released_at=released_at,
        pending_seconds=pending_s,
        org_capacity=limit and _capacity_at_submit(gpu_type, limit),
        team_capacity=team_limit and _capacity_at_submit(gpu_type, team_limit),
        active_at_submit=active_jobs,
        pending_ahead_at_submit=sorted(jobs_ahead, key=lambda job: -job.priority),
        events=target_events,
        events_window_end=released_at or now,
    )


def _is_ahead(other: TrainingJob, target: TrainingJob) -> bool:
    """Return True if ``other`` starts before ``target``: by priority, then by age (the published order)."""
    other_key, target_key = (
        (-(job.priority or 0), job.created_at or datetime.max.replace(tzinfo=UTC)) for job in (other, target)
    )
    return other_key < target_key


def _capacity_at_submit(gpu_type: str, limit: TeamGpuLimit) -> CapacityAtSubmit:
    return CapacityAtSubmit(gpu_type=gpu_type, max_gpus=limit.max_gpus, last_modified=limit.modified_at)


def usage_summary(platform: Platform, start: datetime, end: datetime) -> UsageSummary:
    """Return the bill of a range; raise a 400 for a range that the API refuses."""
    if start < datetime(2026, 1, 1, tzinfo=UTC):
        raise invalid("start_date must not be before 2026-01-01")
    if not start <= end <= start + timedelta(days=31):
        raise invalid("the date range from start_date to end_date must be 0 to 31 days")
    billed_until = platform.now().replace(minute=0, second=0, microsecond=0)
    items = [
        item
        for job in platform.jobs()
        if (
            item := _billed_item(
                job, platform.backend_of(job.id).events(job.id), (start, min(end, billed_until))
            )
        )
    ]
    total = round(sum(item.subtotal for item in items), 4)
    minutes = sum(item.minutes for item in items)
    return UsageSummary(
        training_usage=TrainingUsage(subtotal=total, total=total, minutes=minutes, breakdown=items)
    )


def _billed_item(
    job: TrainingJob, events: Sequence[QueueEvent], billed_range: tuple[datetime, datetime]
) -> BilledItem | None:
    """Return the bill of one job within a range; None if the job did not run in it."""
    machine, (start, end) = job.instance_type, billed_range
    price = PRICES_USD_PER_MINUTE.get(machine.id, 0.0)
    changes = [(event.status, event.created) for event in events if event.created is not None]
    runs = [
        (run_start, run_end)
        for (status, run_start), (_, run_end) in pairwise([*changes, ("", end)])
        if status == JobStatus.RUNNING
    ]
    daily, day = [], start.replace(hour=0, minute=0, second=0, microsecond=0)
    while day < end:
        day_start, day_end = max(start, day), min(end, day + timedelta(days=1))
        overlaps_s = (
            (min(run_end, day_end) - max(run_start, day_start)).total_seconds() for run_start, run_end in runs
        )
        if minutes := int(sum(max(0.0, overlap_s) for overlap_s in overlaps_s) // 60) * (job.node_count or 1):
            daily.append(DailyUsage(date=day.date(), subtotal=round(minutes * price, 4), minutes=minutes))
        day += timedelta(days=1)
    if not daily:
        return None
    resource = BillableResource(
        id=job.id,
        kind=TRAINING_JOB,
        name=job.name,
        model_name=job.project_name,
        instance_type=machine.name,
    )
    return BilledItem(
        billable_resource=resource,
        subtotal=round(sum(usage.subtotal for usage in daily), 4),
        minutes=sum(usage.minutes for usage in daily),
        daily=daily,
    )


ROUTES = [
    *starlette_routes(
        {
            routes.TEAMS: _teams,
            routes.SECRETS: lambda call: {"secrets": call.platform.stores.secrets.names(call.team)},
            routes.SET_SECRET: _upsert_secret,
            routes.DELETE_SECRET: _delete_secret,
            routes.INSTANCE_TYPES: lambda _: {"instance_types": INSTANCE_TYPES},
            routes.PRICES: lambda _: {"instance_types": PRICES},
            routes.BILL: _bill,
            routes.ME: lambda call: {
                "user_id": "emulator",
                "email": EMULATOR_USER_EMAIL,
                "name": "You",
                "workspace_name": call.platform.workspace_name,
            },
            routes.LOG_OUT: lambda _: {},  # nothing to do: the emulator has no login
            routes.CAPACITY: lambda call: training_capacity(call.platform),
            routes.UPDATE_CAPACITY: _set_limit,
            routes.JOB_QUEUE: lambda call: queue_context(call.platform, call.path_parameters["job_id"]),
        }
    ),
    api_route("GET", "/v1/teams/{team_id}", lambda call: call.team),
    api_route("POST", "/emulator/jobs/{job_id}/preempt", _preempt),
]
