"""The bill: minutes and dollars of every job, by the running time in its status history.

A node is billed by the minute while its job runs. The bill is updated hourly, as in the official dashboard,
so it lacks the current hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
SECONDS_PER_MINUTE = 60
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
    machine, nodes = job.instance_type, job.node_count or 1
    price = PRICES_USD_PER_MINUTE.get(machine.id, 0.0)
    seconds: dict[datetime, float] = {}
    for day, ran in _by_day(_runs(events, within)):
        seconds[day] = seconds.get(day, 0.0) + ran
    minutes = {day: int(ran // SECONDS_PER_MINUTE) * nodes for day, ran in seconds.items()}
    daily = [
        DailyUsage(date=day.date(), subtotal=round(count * price, USD_DIGITS), minutes=count)
        for day, count in minutes.items()
        if count
    ]
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
        subtotal=round(sum(day.subtotal for day in daily), USD_DIGITS),
        minutes=sum(day.minutes for day in daily),
        daily=daily,
    )


def _runs(events: Sequence[QueueEvent], within: Range) -> Iterator[Range]:
    """Yield the parts of the range during which the job ran."""
    start, end = within
    known = [(event.status, event.created) for event in events if event.created is not None]
    for (status, began), (_, ended) in pairwise([*known, ("", end)]):
        if status == JobStatus.RUNNING and max(began, start) < min(ended, end):
            yield max(began, start), min(ended, end)


def _by_day(runs: Iterator[Range]) -> Iterator[tuple[datetime, float]]:
    """Yield the UTC day and the seconds of every part of a day in the ranges."""
    for began, ended in runs:
        moment = began
        while moment < ended:
            day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
            until = min(ended, day + DAY)
            yield day, (until - moment).total_seconds()
            moment = until
