"""What the first seconds of a job's screen say of its health, against a server that we did not write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from support.dashboard import text_of
from support.fake_baseten import FakeBaseten, job
from support.fake_runs import iso, metrics_of, node, serve_metrics, training_log
from support.remotes import remote_of
from support.run_snapshots import first_snapshot
from support.waiting import to_screen, until
from tui.analysis.health.registry import KINDS
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import verdict
from tui.app import BtTuiApp
from tui.readers.session import Session
from tui.screens.job.screen import JobScreen

STEADY = [3.0 - step / 200 for step in range(360)]


@pytest.fixture
def baseten() -> Iterator[FakeBaseten]:
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


async def test_a_sick_run_is_never_called_healthy_before_its_metrics_are_judged(baseten: FakeBaseten) -> None:
    seen: list[RunSnapshot] = []

    def is_judged(run: RunSnapshot) -> bool:
        seen.append(run)
        return KINDS["straggler"] in {one.kind for one in run.findings}

    session = Session(remote_of(baseten))
    try:
        await first_snapshot(
            session, await session.client.jobs.find("slow"), is_judged, span=timedelta(hours=1)
        )
    finally:
        await session.aclose()
    assert {verdict(run).state for run in seen} == {"checking", "findings"}


async def test_the_first_step_is_shown_without_the_pause_between_snapshots(
    baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.feeds.run.FIRST_PUBLISH_INTERVAL_S", 1e6)
    serve_metrics(baseten, metrics_of())
    session = Session(remote_of(baseten))
    try:
        run = await first_snapshot(
            session,
            await session.client.jobs.find("slow"),
            lambda run: run.progress is not None and run.progress.step is not None,
            span=timedelta(hours=1),
        )
    finally:
        await session.aclose()
    assert run.metrics is not None and not run.metrics.nodes


async def test_what_home_found_is_on_the_job_s_screen_at_once(baseten: FakeBaseten) -> None:
    shown: list[str] = []
    app = BtTuiApp(remote_of(baseten))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "node-2 slow" in text_of(app))
        await to_screen(pilot, JobScreen, "enter")

        def settled() -> bool:
            shown.append(text_of(app))
            return "step " in shown[-1] and "node-3" in shown[-1]

        await until(pilot, settled)
    assert not any("healthy" in text or "checking" in text for text in shown)
    assert "node-2 lags behind" in shown[-1]
