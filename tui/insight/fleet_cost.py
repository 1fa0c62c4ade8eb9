"""What the jobs of a list have cost: of a project, of a person, of whatever is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from api_client.models import RUNNABLE_STATUSES, JobStatus, TrainingJob
from tui.insight.cost import TotalCost, price_of

_SECONDS_PER_HOUR = 3600.0
_SECONDS_PER_MINUTE = 60.0


def charged_s(job: TrainingJob, now: datetime) -> float | None:
    """For how many seconds a job has cost something, at most; None if it has not run yet.

    A list of jobs does not tell when they began to run, so that the time since each was created counts, to
    its last change if it has ended: too much by what it waited.
    """
    lives = job.current_status in RUNNABLE_STATUSES
    if job.created_at is None or (lives and job.current_status != JobStatus.RUNNING):
        return None
    end = job.updated_at if not lives and job.updated_at is not None else now
    return max(0.0, (end - job.created_at).total_seconds())


def jobs_cost(jobs: Iterable[TrainingJob], prices: Mapping[str, float], now: datetime) -> TotalCost:
    """GPU-hours and money of all these jobs: at most so much; see ``charged_s``.

    Jobs that have not run yet count nothing, and ``unpriced`` those whose price nobody knows.
    """
    return charges_cost(((job, charged_s(job, now)) for job in jobs), prices)


def charges_cost(
    charges: Iterable[tuple[TrainingJob, float | None]], prices: Mapping[str, float]
) -> TotalCost:
    """The same of jobs whose seconds are known: summed up by machine, as there may be ten thousand jobs."""
    kinds: dict[tuple[str, str, int], tuple[TrainingJob, list[float]]] = {}
    for job, seconds in charges:
        if seconds is not None:
            machine = job.instance_type
            kind = (machine.id, machine.name, machine.gpu_count)
            found = kinds.get(kind)
            if found is None:
                found = kinds[kind] = (job, [])
            found[1].append(seconds * (job.node_count or 1))
    count = unpriced = 0
    gpu_hours, usd = 0.0, None
    for job, node_seconds in kinds.values():
        whole_s, price = sum(node_seconds), price_of(job, prices)
        count += len(node_seconds)
        gpu_hours += (job.instance_type.gpu_count or 0) * whole_s / _SECONDS_PER_HOUR
        if price is None:
            unpriced += len(node_seconds)
        else:
            usd = (usd or 0.0) + price * whole_s / _SECONDS_PER_MINUTE
    return TotalCost(count, gpu_hours, usd, unpriced)
