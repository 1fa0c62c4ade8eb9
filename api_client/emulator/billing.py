"""The bill: minutes and dollars of every job, by the running time in its status history.

A node is billed by the minute while its job runs. The bill is updated hourly, as in the official dashboard,
so it lacks the current hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from api_client.emulator.answers import invalid
from api_client.emulator.catalog import PRICES_USD_PER_MINUTE
from api_client.emulator.platform import Platform
from api_client.models import (
    BillableResource,
    BilledItem,
    DailyUsage,
    JobStatus,
    QueueEvent,
    TrainingJob,
    TrainingUsage,
    UsageSummary,
)
from api_client.models.billing import TRAINING_JOB

LONGEST_RANGE = timedelta(days=31)
EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE, NOTHING = timedelta(minutes=1), timedelta()
USD_DIGITS = 4

Range = tuple[datetime, datetime]


def usage_summary(platform: Platform, start: datetime, end: datetime) -> UsageSummary:
    """Return the bill of a range; raise a 400 for a range that the API refuses."""
    if start < EARLIEST:
        raise invalid("start_date must not be before 2026-01-01")
    if not start <= end <= start + LONGEST_RANGE:
        raise invalid("the date range from start_date to end_date must be 0 to 31 days")
    billed_until = platform.now().replace(minute=0, second=0, microsecond=0)
    items = [
        item
        for job in platform.jobs()
        if (item := _item(job, platform.backend_of(job.id).events(job.id), (start, min(end, billed_until))))
    ]
    total = round(sum(item.subtotal for item in items), USD_DIGITS)
    minutes = sum(item.minutes for item in items)
    return UsageSummary(
        training_usage=TrainingUsage(subtotal=total, total=total, minutes=minutes, breakdown=items)
    )


def _item(job: TrainingJob, events: Sequence[QueueEvent], within: Range) -> BilledItem | None:
    """Return what is billed for one job; None if it did not run within the range."""
    machine, (start, end) = job.instance_type, within
    price = PRICES_USD_PER_MINUTE.get(machine.id, 0.0)
    changes = [(event.status, event.created) for event in events if event.created is not None]
    runs = [
        (began, ended)
        for (status, began), (_, ended) in pairwise([*changes, ("", end)])
        if status == JobStatus.RUNNING
    ]
    daily, day = [], start.replace(hour=0, minute=0, second=0, microsecond=0)
    while day < end:
        first, last = max(start, day), min(end, day + DAY)
        ran = sum((max(min(ended, last) - max(began, first), NOTHING) for began, ended in runs), NOTHING)
        if minutes := ran // MINUTE * (job.node_count or 1):
            daily.append(
                DailyUsage(date=day.date(), subtotal=round(minutes * price, USD_DIGITS), minutes=minutes)
            )
        day += DAY
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
        subtotal=round(sum(usage.subtotal for usage in daily), USD_DIGITS),
        minutes=sum(usage.minutes for usage in daily),
        daily=daily,
    )
