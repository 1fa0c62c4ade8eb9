"""The streams as the client offers them: bounds, defaults, ends."""

from datetime import UTC, datetime

import httpx
import pytest
from client_support import JOB, START, World, json_reply

from api_client import LogEnd

CREATED = "2026-01-02T03:00:00Z"
CREATED_MS = int(datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC).timestamp() * 1000)
MINUTE_MS = 60_000
DONE = JOB | {"current_status": "TRAINING_JOB_COMPLETED", "created_at": CREATED, "updated_at": CREATED}
LINES = [
    {"timestamp": f"{CREATED_MS + offset_ms}000000", "message": f"line {offset_ms}", "replica": "node-0"}
    for offset_ms in (-2 * MINUTE_MS, 0, 1, 1, MINUTE_MS)
]


def platform() -> World:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/logs"):
            params = request.url.params
            start_ms, end_ms = int(params["start_epoch_millis"]), int(params["end_epoch_millis"])
            lines = [line for line in LINES if start_ms <= int(line["timestamp"]) // 1_000_000 < end_ms]
            lines = lines if params["direction"] == "asc" else lines[::-1]
            return json_reply({"logs": lines[: int(params["limit"])]})
        if request.url.path.endswith("/metrics"):
            return json_reply({"training_job": DONE, "cpu_usage": [{"timestamp": CREATED, "value": 1}]})
        return json_reply({"training_job": DONE})

    return World(answer)


@pytest.mark.parametrize(
    ("start", "first"), [(None, 0), (datetime(2026, 1, 2, 3, 0, 0, 1_000, tzinfo=UTC), 2)]
)
async def test_following_starts_before_the_jobs_creation_or_at_a_moment_and_ends_with_the_job(
    start: datetime | None, first: int
) -> None:
    *batches, end = [item async for item in platform().client.logs.follow("p", "j", start=start)]
    messages = [entry.message for batch in batches for entry in batch.entries]  # type: ignore[union-attr]
    assert messages == [line["message"] for line in LINES[first:]]
    assert isinstance(end, LogEnd)
    assert end.job.current_status == "TRAINING_JOB_COMPLETED"


async def test_a_moment_without_zone_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="zone"):
        async for _ in platform().client.logs.follow("p", "j", start=datetime(2026, 1, 1)):  # noqa: DTZ001
            pass


@pytest.mark.parametrize("kind", ["logs", "jobs", "metrics"])
async def test_a_request_that_hangs_does_not_hold_up_whoever_watches_for_a_minute(kind: str) -> None:
    """It is asked again soon, with more patience each time: a server may be that slow."""
    silences_s: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        silences_s.append(request.extensions["timeout"]["read"])
        if len(silences_s) < 5:
            raise httpx.ReadTimeout("nothing came")
        return platform().server.replies[0](request)  # type: ignore[operator]

    client = World(answer).client
    watch, follow = client.jobs.watch("p", "j"), client.metrics.follow("p", "j")
    history = client.logs.history("p", "j", start=START)
    await anext({"logs": history, "jobs": watch, "metrics": follow}[kind], None)
    assert silences_s[:5] == [8, 16, 32, 60, 60]
    await client.jobs.get("p", "j")
    assert silences_s[-1] == 60
