"""Read what was billed for each job, in date ranges that the API accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.vocabulary import TRAINING_JOB
from tui.analysis.cost import NOTHING, Bill, Billed, total_billed

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models.account import BilledItem

MAX_BILL_RANGE = timedelta(days=31)
"""Longest time range for which the API returns a bill."""
BILL_INTERVAL_S = 600.0
"""Interval at which feeds read the bill; the platform updates it hourly."""


async def read_bill(client: TrainingClient, since: datetime, now: datetime) -> Bill:
    """Return what was billed since the day of ``since`` (UTC), or why the bill is unreadable.

    Only organization admins may read the bill, and not every server has it. Raises RequestError.
    """
    midnight = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(datetime(2026, 1, 1, tzinfo=UTC), midnight)  # the API rejects earlier days
    items: list[BilledItem] = []
    try:
        for range_start, range_end in _bill_ranges(start, now):
            usage = (await client.account.usage_summary(range_start, range_end)).training_usage
            items += usage.breakdown if usage is not None else ()
    except (ErrorAnswer, InvalidAnswer) as error:
        if isinstance(error, Unauthorized) and error.is_key_invalid:
            raise
        return Bill(start, unreadable_reason=_unreadable_reason(error))
    by_job: defaultdict[str, list[BilledItem]] = defaultdict(list)
    for item in items:
        if item.billable_resource.kind == TRAINING_JOB:
            by_job[item.billable_resource.id].append(item)
    jobs = {
        job_id: amount
        for job_id, job_items in by_job.items()
        if (amount := _total_billed(job_items)) is not None
    }
    billed_of_deleted = [jobs[job_id] for job_id in jobs if by_job[job_id][-1].billable_resource.is_deleted]
    return Bill(start, jobs, total_billed(billed_of_deleted))


def _bill_ranges(start: datetime, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    while start < now:
        yield start, min(now, start + MAX_BILL_RANGE)
        start += MAX_BILL_RANGE


def _total_billed(items: list[BilledItem]) -> Billed | None:
    """Add up a job's items; None if they may overlap and have no amounts by day.

    The API does not document whether a range includes its last day, so a day in two ranges counts once.
    """
    if len(items) == 1:
        return Billed(items[0].subtotal, items[0].minutes)
    days: dict[tuple[str | None, date], Billed] = {}
    for item in items:
        if not item.daily:
            return None
        for day in item.daily:
            key = item.billable_resource.instance_type, day.date
            days[key] = max(days.get(key, NOTHING), Billed(day.subtotal, day.minutes))
    return total_billed(days.values())


def _unreadable_reason(error: RequestError) -> str:
    if isinstance(error, Unauthorized):
        return "only organization admins can read the bill"
    return "this server has no bill" if isinstance(error, NotFound) else str(error)
