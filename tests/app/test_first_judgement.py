"""What the first seconds of a job's screen say of its health, against a server that we did not write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from support.dashboard import text_of
from support.remotes import remote_of
from support.stranger import Answer, FakeBaseten, job
from support.stranger_runs import iso, metrics_of, node, serve_metrics, training_log
from support.waiting import until
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot, verdict
from tui.app import BtTuiApp
from tui.feeds.run import RunFeed
from tui.readers.session import Session
from tui.screens.job.screen import JobScreen

STEADY = [3.0 - step / 200 for step in range(360)]
PATIENCE_S = 60.0


@pytest.fixture
def stranger() -> Iterator[FakeBaseten]:
    """A server with a run of four nodes, the third of which is slow."""
    with FakeBaseten() as server:
        now_s = time.time()
        begin_s = now_s - 10 * len(STEADY)
        server.jobs = [
            job(
                "slow",
                "RUNNING",
                name="slow-one",
                created_at=iso(begin_s),
                updated_at=iso(now_s),
                node_count=4,
            )
        ]
        training_log(server, "slow", begin_s, list(STEADY), total=10_000)
        use = (0.95, 0.95, 0.5, 0.95)
        nodes = [node(f"node-{rank}", [level] * 60, end_s=now_s) for rank, level in enumerate(use)]
        serve_metrics(server, metrics_of(*nodes))
        yield server


async def snapshots_until(
    stranger: FakeBaseten, last: FindingKind | str, known: tuple[HealthFinding, ...] = ()
) -> list[RunSnapshot]:
    """What the feed publishes, up to the first snapshot with that finding, or of that state."""
    seen: list[RunSnapshot] = []
    done = asyncio.Event()

    def take(run: RunSnapshot) -> None:
        seen.append(run)
        if last == verdict(run).state or last in {one.kind for one in run.findings}:
            done.set()

    session = Session(remote_of(stranger))
    try:
        subject = await session.find_job("slow")
        feed = RunFeed(
            session,
            subject,
            publish=take,
            on_log=lambda part: None,
            on_gone=lambda: None,
            span=timedelta(hours=1),
            findings=known,
        )
        task = asyncio.create_task(feed.run())
        try:
            await asyncio.wait_for(done.wait(), PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    finally:
        await session.aclose()
    return seen


async def test_a_sick_run_is_never_called_healthy_before_its_metrics_are_judged(
    stranger: FakeBaseten,
) -> None:
    seen = await snapshots_until(stranger, FindingKind.STRAGGLER)
    assert {verdict(run).state for run in seen} == {"checking", "findings"}


async def test_metrics_that_cannot_be_read_end_the_checking_without_a_tick(stranger: FakeBaseten) -> None:
    stranger.on("GET", r".*/jobs/\w+/metrics", Answer(403, {"code": "NO", "message": "not for you"}))
    seen = await snapshots_until(stranger, "unknown")
    assert {verdict(run).state for run in seen} == {"checking", "unknown"}
    assert verdict(seen[-1]).words == "no problems in the log; can't read the metrics"


async def test_what_is_known_of_a_job_stays_until_it_is_judged_anew(stranger: FakeBaseten) -> None:
    known = (
        HealthFinding(FindingKind.STRAGGLER, "warning", "node-2 is slow", "node-2"),
        HealthFinding(FindingKind.GPU_IDLE, "warning", "GPUs idle"),
    )
    seen = await snapshots_until(stranger, FindingKind.STRAGGLER, known)
    assert seen[0].findings and {verdict(run).state for run in seen} == {"findings"}
    assert {one.key for one in seen[0].findings} == {one.key for one in known}


async def test_what_home_found_is_on_the_job_s_screen_at_once(stranger: FakeBaseten) -> None:
    shown: list[str] = []
    app = BtTuiApp(remote_of(stranger))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "node-2 slow" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen))

        def settled() -> bool:
            shown.append(text_of(app))
            return "step " in shown[-1] and "node-3" in shown[-1]

        await until(pilot, settled)
    assert not any("healthy" in text or "checking" in text for text in shown)
    assert "node-2 lags behind" in shown[-1]
