"""The snapshot of the capacity screen: GPU limits, the jobs that hold GPUs, and the queue. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from api_client.vocabulary import WAITING_STATUSES

if TYPE_CHECKING:
    from api_client.models import GpuCapacity, TrainingCapacity, TrainingJob

CapacityState = Literal["loading", "known", "empty", "absent", "forbidden", "failed"]
"""``absent``: the server has no such route; ``forbidden``: this API key may not read it."""


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """GPUs of one type, of the organization (``team`` is empty) or of a team. Names are not sanitized.

    ``on_demand`` and ``spot`` are GPUs in use. If the server does not separate them, all count as on demand,
    as in the official client. The limit applies to on-demand GPUs only, so ``share`` and ``free`` do not
    include spot GPUs.
    """

    team: str
    gpu_type: str
    baseline: int
    limit: int
    on_demand: int
    spot: int
    team_id: str = ""

    @property
    def in_use(self) -> int:
        return self.on_demand + self.spot

    @property
    def free(self) -> int:
        """GPUs still available to a new on-demand job."""
        return max(0, self.limit - self.on_demand)

    @property
    def share(self) -> float:
        """On-demand GPUs in use as a fraction of the limit; may exceed 1. Any use of a limit of 0 is 1."""
        return self.on_demand / self.limit if self.limit else float(self.on_demand > 0)

    @property
    def key(self) -> str:
        return f"{self.team_id or self.team}/{self.gpu_type}"


@dataclass(frozen=True, slots=True)
class GpuAllocation:
    """A job that holds GPUs or waits for them.

    ``place`` is a waiting job's position in the queue for its GPU type, from 1; 0 for a job that holds GPUs.
    """

    job: TrainingJob
    gpu_type: str
    gpus: int
    age_s: float
    waits: bool
    place: int = 0

    @property
    def key(self) -> str:
        return self.job.id


@dataclass(frozen=True, slots=True)
class CapacityView:
    """GPU limits and usage, the waiting jobs in queue order, and the jobs that hold GPUs.

    After a failed request, the last known data is kept.
    """

    state: CapacityState = "loading"
    rows: tuple[CapacityRow, ...] = ()
    """The organization's rows, then the teams'."""
    waiting: tuple[GpuAllocation, ...] = ()
    holding: tuple[GpuAllocation, ...] = ()
    at: datetime | None = None
    """Time of the last update of ``rows``, or of the jobs if the server provides no rows."""
    error: str = ""
    """Why the last request of ``rows`` failed; empty if it succeeded."""
    jobs_known: bool = False
    """True once the jobs have been read."""
    jobs_error: str = ""
    """Why the last request of the jobs failed; empty if it succeeded."""

    @property
    def shown_rows(self) -> list[CapacityRow]:
        """``rows`` without rows of teams that repeat the organization's, as those of an only team do."""
        organization_figures = {_key_figures(row) for row in self.rows if not row.team}
        return [row for row in self.rows if not row.team or _key_figures(row) not in organization_figures]


def _key_figures(row: CapacityRow) -> tuple[str, int, int, int]:
    return (row.gpu_type, row.on_demand, row.spot, row.limit)


def fold_capacity(capacity: TrainingCapacity) -> tuple[CapacityRow, ...]:
    organization_rows = [_capacity_row(gpu_capacity) for gpu_capacity in capacity.gpu_capacities]
    team_rows = [
        _capacity_row(gpu_capacity, gpu_capacity.team_name or gpu_capacity.team_id, gpu_capacity.team_id)
        for gpu_capacity in capacity.team_gpu_capacities
    ]
    organization_rows.sort(key=lambda row: row.gpu_type)
    team_rows.sort(key=lambda row: (row.team.lower(), row.gpu_type))
    return (*organization_rows, *team_rows)


def _capacity_row(gpu_capacity: GpuCapacity, team: str = "", team_id: str = "") -> CapacityRow:
    return CapacityRow(
        team=team,
        team_id=team_id,
        gpu_type=gpu_capacity.gpu_type,
        baseline=gpu_capacity.baseline,
        limit=gpu_capacity.limit,
        on_demand=gpu_capacity.on_demand_count,
        spot=gpu_capacity.spot_usage_count or 0,
    )


def gpu_allocations(
    jobs: Iterable[TrainingJob], now: datetime
) -> tuple[tuple[GpuAllocation, ...], tuple[GpuAllocation, ...]]:
    """Return the waiting jobs in queue order (priority, then age), and jobs that hold GPUs, largest first.

    Jobs without GPUs are left out. The queue order is the documented order; the server may start another job
    next.
    """
    allocations = [_allocation_of(job, now) for job in jobs if not job.is_finished and job.total_gpus]
    waiting = sorted(
        (allocation for allocation in allocations if allocation.waits),
        key=lambda allocation: (
            allocation.gpu_type,
            -(allocation.job.priority or 0),
            -allocation.age_s,
            allocation.job.id,
        ),
    )
    queue_lengths: dict[str, int] = {}
    waiting_with_places = []
    for allocation in waiting:
        queue_lengths[allocation.gpu_type] = position = queue_lengths.get(allocation.gpu_type, 0) + 1
        waiting_with_places.append(replace(allocation, place=position))
    holding = sorted(
        (allocation for allocation in allocations if not allocation.waits),
        key=lambda allocation: (allocation.gpu_type, -allocation.gpus, allocation.job.id),
    )
    return tuple(waiting_with_places), tuple(holding)


def queue_position(
    job: TrainingJob, jobs: Iterable[TrainingJob], capacity: TrainingCapacity, now: datetime
) -> str:
    """Return a text like ``now 2 of 3 in line for H100, 60 of 64 in use``; empty if the job does not wait."""
    waiting, _ = gpu_allocations(jobs, now)
    own_allocation = next((allocation for allocation in waiting if allocation.job.id == job.id), None)
    if own_allocation is None:
        return ""
    count = sum(allocation.gpu_type == own_allocation.gpu_type for allocation in waiting)
    rows = [
        row for row in fold_capacity(capacity) if not row.team and row.gpu_type == own_allocation.gpu_type
    ]
    usage = "".join(f", {row.in_use} of {row.limit} in use" for row in rows)
    return f"now {own_allocation.place} of {count} in line for {own_allocation.gpu_type}{usage}"


def _allocation_of(job: TrainingJob, now: datetime) -> GpuAllocation:
    age_s = max(0.0, (now - job.created_at).total_seconds()) if job.created_at else 0.0
    waits = job.current_status in WAITING_STATUSES
    return GpuAllocation(job, job.instance_type.gpu_type or "GPU", job.total_gpus, age_s, waits)


def queued_gpu_count(view: CapacityView, row: CapacityRow) -> int:
    """Return the number of GPUs of the row's type that all waiting jobs need together."""
    return sum(job.gpus for job in view.waiting if job.gpu_type == row.gpu_type)
