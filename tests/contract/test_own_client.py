"""Our own client on the emulator's routes, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from api_client import NotFound, Remote, RequestError, TrainingClient
from api_client.models import JobStatus, QueueEvent, UsageSummary
from api_client.models.logs import LogBatch, LogEnd, LogLine
from support.fake_backend import START, START_MS
from support.served_platform import KEY, Served

SPEC = {
    "name": "mine",
    "image": {"base_image": "python:3.11"},
    "runtime": {"start_commands": ["true"]},
    "interactive_session": {"trigger": "on_demand"},
}
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDg0cGVyc29uYWxseSBtYWRlIHVwIGtleSBoZXJl me@here"


@pytest.fixture
async def client(served: Served) -> AsyncIterator[TrainingClient]:
    remote = Remote("emulator", served.url, served.url, key=SecretStr(KEY), key_origin="a test")
    async with TrainingClient(remote) as opened:
        yield opened


async def test_projects_and_jobs(client: TrainingClient, served: Served) -> None:
    (project,) = await client.projects.list()
    assert (project.id, project.team_name) == (served.project_id, "Research")
    team = next(team for team in await client.account.teams() if team.default)
    assert (await client.projects.upsert("llama-sft", team_id=team.id)).id == project.id
    assert [job.id for job in await client.jobs.list(project.id)] == [served.job_id]
    assert (await client.jobs.find(served.job_id)).project_id == project.id
    made = await client.jobs.create(project.id, SPEC)
    assert (made.name, made.current_status) == ("mine", JobStatus.CREATED)
    assert [job.id for job in await client.jobs.search(statuses=[JobStatus.CREATED])] == [made.id]
    served.backend.set_status(made.id, JobStatus.PENDING)
    assert (await client.jobs.update(project.id, made.id, priority=4)).priority == 4
    assert (await client.jobs.stop(project.id, made.id)).is_finished
    twin = await client.jobs.recreate(project.id, made.id)
    assert (await client.jobs.delete(project.id, twin.id)).id == twin.id
    with pytest.raises(NotFound):
        await client.jobs.find(twin.id)
    with pytest.raises(NotFound):
        await client.jobs.download_urls(project.id, made.id)
    assert (await client.jobs.queue_context(made.id)).events
    assert (await client.projects.delete(project.id)).deleted
    assert (await client.projects.list(), served.backend.jobs()) == ([], [])


async def test_a_jobs_log_is_followed_to_its_end(client: TrainingClient, served: Served) -> None:
    served.backend.lines[served.job_id] = [
        {
            "timestamp": f"{START_MS + number // 3}{number % 3:06d}",
            "message": str(number),
            "replica": "node-0",
        }
        for number in range(2500)
    ]
    served.backend.set_status(served.job_id, JobStatus.COMPLETED)
    served.clock.moment = datetime.now(UTC)
    lines: list[str] = []
    end: LogEnd | None = None
    ids = (served.project_id, served.job_id)
    async for part in client.logs.history(*ids, start=START, end=START + timedelta(minutes=5)):
        lines += [entry.message for entry in part.entries if isinstance(entry, LogLine)]
    assert lines == [str(number) for number in range(2500)]
    recent = served.clock.moment - timedelta(hours=1)
    async for part in client.logs.follow(*ids, start=recent):
        assert isinstance(part, LogBatch | LogEnd)
        end = part if isinstance(part, LogEnd) else end
    assert end is not None
    assert end.job.current_status == JobStatus.COMPLETED


async def test_sessions_account_and_the_rest(client: TrainingClient, served: Served) -> None:
    made = await client.jobs.create(served.project_id, SPEC)
    ids = (served.project_id, made.id)
    (code,) = await client.sessions.auth_codes(*ids)
    changed = await client.sessions.update(*ids, code.session_id, timeout_minutes=30)
    assert changed.interactive_session.timeout_minutes == 510
    signed = await client.sessions.sign_ssh(*ids, public_key=PUBLIC_KEY, replica_id="0")
    assert "emulator" in signed.proxy_address
    assert all(price.price for price in await client.account.instance_type_prices())
    await client.account.upsert_secret("hf", "value")
    assert [secret.name for secret in await client.account.secrets()] == ["hf"]
    await client.account.delete_secret("hf")
    with pytest.raises(NotFound):
        await client.account.delete_secret("hf")
    assert {item.gpu_type for item in (await client.capacity.get()).gpu_capacities} >= {"H100", "H200"}
    assert (await client.blobs.training_credentials()).s3_bucket == "bt-emulator"


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
