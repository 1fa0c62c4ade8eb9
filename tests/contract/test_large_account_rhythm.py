"""How often Home asks for all jobs: every time in a small account, seldom in a large one."""

from __future__ import annotations

import asyncio

import pytest

from support.fake_baseten import FakeBaseten, job
from support.remotes import remote_of
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.feeds.fleet import FEW_JOBS, FULL_LIST_EVERY, MANY_JOBS, FleetFeed
from tui.readers.session import Session

PATIENCE_S = 60.0
ROUNDS = 20
RUNS = "the-one-that-runs"


@pytest.mark.parametrize(
    ("jobs", "between"), [(FEW_JOBS // 10, 1), (FEW_JOBS + 1, FULL_LIST_EVERY), (2 * MANY_JOBS, 12)]
)
async def test_the_more_jobs_the_seldomer_all_are_asked_for(jobs: int, between: int) -> None:
    enough = asyncio.Event()
    ended = asyncio.Event()
    searches: list[bool] = []

    def take(fleet: FleetSnapshot) -> None:
        assert len(fleet.jobs) == jobs, "those that ended long ago stay on the list"
        if any(row.id == RUNS and not row.running for row in fleet.jobs):
            ended.set()

    with FakeBaseten() as baseten:
        baseten.jobs = [job(f"job{number:05}") for number in range(jobs - 1)] + [job(RUNS, "RUNNING")]
        session = Session(remote_of(baseten))
        feed = FleetFeed(session, take, list_interval_s=0.01)
        loop = asyncio.get_running_loop()
        answer = baseten.answer

        def counted(asked):  # type: ignore[no-untyped-def]
            if asked.path.endswith("/search"):
                searches.append("statuses" not in asked.body)
                if len(searches) == ROUNDS // 2:
                    baseten.jobs[-1] = job(RUNS, "FAILED")
                if len(searches) == ROUNDS:
                    loop.call_soon_threadsafe(enough.set)
            return answer(asked)

        baseten.answer = counted  # type: ignore[method-assign]
        task = asyncio.create_task(feed.run())
        try:
            await asyncio.wait_for(enough.wait(), PATIENCE_S)
            feed.refresh()
            await asyncio.wait_for(ended.wait(), PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await session.client.aclose()
    whole = [place for place, everything in enumerate(searches[:ROUNDS]) if everything]
    assert whole == list(range(0, ROUNDS, between))
