"""What the jobs of a list have cost: of a project, of a person, of whatever is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from api_client.models import RUNNABLE_STATUSES, JobStatus, TrainingJob
from tui.insight.cost import TotalCost, price_of

_SECONDS_PER_HOUR = 3600.0
_SECONDS_PER_MINUTE = 60.0


def jobs_cost(jobs: Iterable[TrainingJob], prices: Mapping[str, float], now: datetime) -> TotalCost:
    """GPU-hours and money of all these jobs: at most so much.

    A list of jobs does not tell when they began to run, so that the time since each was created counts, to
    its last change if it has ended: too much by what it waited. Jobs that have not run yet count nothing,
    and ``unpriced`` those whose price nobody knows. Plain sums: there may be ten thousand jobs.
    """
    count = unpriced = 0
    gpu_hours, usd = 0.0, None
    known_prices: dict[tuple[str, str], float | None] = {}
    for job in jobs:
        lives = job.current_status in RUNNABLE_STATUSES
        if job.created_at is None or (lives and job.current_status != JobStatus.RUNNING):
            continue
        end = job.updated_at if not lives and job.updated_at is not None else now
        seconds = max(0.0, (end - job.created_at).total_seconds())
        nodes = job.node_count or 1
        count += 1
        gpu_hours += (job.instance_type.gpu_count or 0) * nodes * seconds / _SECONDS_PER_HOUR
        machine = (job.instance_type.id, job.instance_type.name)
        if machine not in known_prices:
            known_prices[machine] = price_of(job, prices)
        price = known_prices[machine]
        if price is None:
            unpriced += 1
        else:
            usd = (usd or 0.0) + price * nodes * seconds / _SECONDS_PER_MINUTE
    return TotalCost(count, gpu_hours, usd, unpriced)
