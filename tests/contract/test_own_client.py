"""Our own client on the emulator's routes, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta

import pytest
from pydantic import SecretStr

from api_client import Remote, RequestError, TrainingClient
from api_client.models import JobStatus, QueueEvent, UsageSummary
from support.fake_backend import START
from support.served_platform import KEY, Served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[TrainingClient]:
    remote = Remote("emulator", served.url, served.url, key=SecretStr(KEY), key_origin="a test")
    async with TrainingClient(remote) as opened:
        yield opened


async def test_the_bill_has_the_minutes_of_each_node_up_to_the_hour(
    client: TrainingClient, served: Served
) -> None:
    # It ran from 12:00 to 13:00, and from 23:30 to the next day; at 00:40, the bill is as of 00:00.
    served.clock.moment = START + timedelta(hours=12, minutes=40)
    history = served.backend.histories[served.job_id]
    again = [(JobStatus.PENDING, 1.0), (JobStatus.RUNNING, 11.5)]
    for status, hours in again:
        created = START + timedelta(hours=hours)
        history.append(QueueEvent(training_job_id=served.job_id, status=status, created=created))
    served.backend.add("waits", served.project_id, JobStatus.PENDING)

    def usage(days: float) -> Awaitable[UsageSummary]:
        return client.account.usage_summary(START, START + timedelta(days=days))

    answer = (await usage(31)).training_usage
    assert answer is not None
    (item,) = answer.breakdown
    assert item.billable_resource.id == served.job_id
    # 2 nodes × (60 + 30) minutes at $0.86667
    assert (item.minutes, item.subtotal, answer.total) == (180, 156.0006, 156.0006)
    assert [(day.date.day, day.minutes) for day in item.daily] == [(1, 180)]
    served.clock.moment = START + timedelta(hours=14, minutes=1)
    later = (await usage(31)).training_usage
    assert later is not None
    assert [(day.date.day, day.minutes) for day in later.breakdown[0].daily] == [(1, 180), (2, 240)]
    for refused in (client.account.usage_summary(START - timedelta(days=90), START), usage(31.5)):
        with pytest.raises(RequestError, match="date"):
            await refused
