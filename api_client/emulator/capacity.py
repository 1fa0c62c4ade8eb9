"""GPU capacity of the organization and its teams, how much of it jobs use, and a job's queue context."""

from __future__ import annotations

from collections import Counter
from typing import Any

from api_client.emulator.catalog import GPU_LIMITS, GpuLimit
from api_client.emulator.platform import HOLDING_STATUSES, SPOT, Platform
from api_client.emulator.store.account import TeamGpuLimit
from api_client.models import (
    ActiveJobAtSubmit,
    CapacityAtSubmit,
    GpuCapacity,
    JobStatus,
    PendingJobAhead,
    QueueContext,
    Team,
    TeamGpuCapacity,
    TrainingCapacity,
    TrainingJob,
)


def training_capacity(platform: Platform) -> TrainingCapacity:
    used: Counter[tuple[str, str, bool]] = Counter()
    for job in platform.jobs():
        if job.current_status in HOLDING_STATUSES:
            team_id, is_spot = (
                platform.stores.team_of(job.project_id),
                (job.availability_model or "").lower() == SPOT,
            )
            used[team_id, job.instance_type.gpu_type or "", is_spot] += job.total_gpus
    teams = platform.stores.teams.all()

    def limit_of(team: Team, limit: GpuLimit) -> int:
        own = platform.stores.teams.gpu_limit(team.id, limit.gpu_type)
        return limit.limit if own is None else own.max_gpus

    def usage(gpu_type: str, *among: Team) -> dict[str, int]:
        dedicated, spot = (sum(used[team.id, gpu_type, kind] for team in among) for kind in (False, True))
        counts = {"dedicated_usage_count": dedicated, "spot_usage_count": spot}
        return {**counts, "usage_count": dedicated + spot}

    return TrainingCapacity(
        gpu_capacities=[
            GpuCapacity(
                gpu_type=limit.gpu_type,
                baseline=limit.baseline,
                limit=limit.limit,
                **usage(limit.gpu_type, *teams),
            )
            for limit in GPU_LIMITS
        ],
        team_gpu_capacities=[
            TeamGpuCapacity(
                team_id=team.id,
                team_name=team.name,
                gpu_type=limit.gpu_type,
                baseline=0,
                limit=limit_of(team, limit),
                **usage(limit.gpu_type, team),
            )
            for team in teams
            for limit in GPU_LIMITS
        ],
    )


WORKLOAD_PLANE = "emulator"


def queue_context(platform: Platform, job_id: str) -> QueueContext:
    """Build the queue context: jobs active and pending ahead at submission, and their status changes.

    The changes of other jobs are limited to the time from the submission to the release of this one.
    """
    target = platform.job_by_id(job_id)
    now = platform.now()
    submitted_at = target.created_at or now
    gpu_type = target.instance_type.gpu_type
    histories = {
        job.id: (job, platform.backend_of(job.id).events(job.id))
        for job in platform.jobs()
        if job.instance_type.gpu_type == gpu_type or job.id == job_id
    }
    own_events = histories[job_id][1]
    released_at = next((event.created for event in own_events if event.status == JobStatus.CREATED), None)
    window_end = released_at or now
    active, ahead = [], []
    for other, events in histories.values():
        past = [event for event in events if event.created is not None and event.created <= submitted_at]
        if other.id == job_id or not past:
            continue
        fields: dict[str, Any] = {
            "training_job_id": other.id,
            "training_job_name": other.name,
            "instance_type_name": other.instance_type.name,
        }
        if past[-1].status in HOLDING_STATUSES:
            fields |= {"status_at_submit": past[-1].status, "status_set_at": past[-1].created}
            plane, gpus = WORKLOAD_PLANE, other.total_gpus
            active.append(ActiveJobAtSubmit(**fields, total_gpus=gpus, workload_plane_name=plane))
        elif past[-1].status == JobStatus.PENDING and _is_ahead(other, target):
            fields |= {"requested_gpus": other.total_gpus, "priority": other.priority or 0}
            ahead.append(PendingJobAhead(**fields, submitted_at=other.created_at or submitted_at))
    shown = {job_id, *(job.training_job_id for job in active), *(job.training_job_id for job in ahead)}
    # Return the target's whole history: it is the only source of exit codes.
    events = [
        event
        for shown_id in shown
        for event in histories[shown_id][1]
        if shown_id == job_id or (event.created and submitted_at <= event.created <= window_end)
    ]
    pending_s = None if released_at is None else int((released_at - submitted_at).total_seconds())
    limit = next((limit for limit in GPU_LIMITS if limit.gpu_type == gpu_type), None)
    team_limit = platform.stores.teams.gpu_limit(platform.stores.team_of(target.project_id), gpu_type or "")
    return QueueContext(
        target_job_id=job_id,
        target_job_name=target.name,
        gpu_type=gpu_type or "",
        requested_gpus=target.total_gpus,
        submitted_at=submitted_at,
        released_at=released_at,
        pending_seconds=pending_s,
        org_capacity=limit and _at_submit(limit.gpu_type, TeamGpuLimit(limit.limit, submitted_at)),
        team_capacity=team_limit and _at_submit(gpu_type or "", team_limit),
        active_at_submit=active,
        pending_ahead_at_submit=sorted(ahead, key=lambda job: -job.priority),
        events=sorted(events, key=lambda event: event.created or submitted_at),
        events_window_end=window_end,
    )


def _is_ahead(other: TrainingJob, target: TrainingJob) -> bool:
    """Compare by priority, then by age (the published order)."""
    theirs, ours = other.priority or 0, target.priority or 0
    older = bool(other.created_at and target.created_at and other.created_at < target.created_at)
    return theirs > ours or (theirs == ours and older)


def _at_submit(gpu_type: str, limit: TeamGpuLimit) -> CapacityAtSubmit:
    return CapacityAtSubmit(gpu_type=gpu_type, max_gpus=limit.max_gpus, last_modified=limit.modified_at)
