"""Stopping a job: the question names what is lost, and the job can stop after its next checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from textual.widgets import Input

from support.dashboard import job_view, opened, text_of
from support.deploying_server import DeployingServer, listed_checkpoint
from support.fake_baseten import Answer, ReceivedRequest
from support.fake_runs import STEADY, iso, live_run
from support.waiting import dashboard_on, sees, to_screen, until
from support.worlds import run
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding
from tui.screens.dialogs import ConfirmScreen, StopRulesScreen, StopScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeployingServer]:
    """A server with a running job, which can be stopped."""
    monkeypatch.setattr("tui.readers.stopping.UNSAVED_TIMEOUT_S", 60.0)
    with DeployingServer() as server:
        server.jobs = []
        live_run(server, "job1")

        def stop(_asked: ReceivedRequest) -> Answer:
            server.jobs[0] |= {"current_status": "TRAINING_JOB_STOPPED"}
            return Answer(body={"training_job": server.jobs[0]})

        server.on("POST", ".*/jobs/job1/stop", stop)
        yield server


@pytest.mark.proves("docs/commands.md", "Submit a job")
async def test_a_stalled_run_may_never_save_again() -> None:
    stalled = HealthFinding(KINDS["stalled"], "critical", "stalled")
    app = job_view(run(findings=(stalled,)))
    async with opened(app) as pilot:
        await to_screen(pilot, StopScreen, "s")
        assert "it may never save its next checkpoint" in " ".join(text_of(app).replace("│", " ").split())


@pytest.mark.proves("docs/commands.md", "Submit a job")
async def test_a_job_is_stopped_after_its_next_checkpoint_or_not_or_now(server: DeployingServer) -> None:
    now_s = time.time()
    server.checkpoints = [
        listed_checkpoint(f"checkpoint-{number}", created_at=iso(now_s + 600 * (number - 6.5)))
        for number in range(1, 7)
    ]
    prices = [{"instance_type": server.jobs[0]["instance_type"], "price": 0.5}]
    server.on("GET", "/v1/instance_type_prices", Answer(body={"instance_types": prices}))

    async with dashboard_on(server, size=(100, 30), notifications=True) as (app, pilot):
        await until(pilot, lambda: "job1" in text_of(app) and app.screen.snapshot.prices)  # type: ignore[attr-defined]
        await to_screen(pilot, StopScreen, "s")
        await sees(pilot, "since checkpoint-6, ≈ $")
        await to_screen(pilot, HomeScreen, "escape")
        await to_screen(pilot, JobScreen, "enter")
        await sees(pilot, "checkpoint-6", "≈ $")
        await to_screen(pilot, StopScreen, "s")
        await sees(pilot, "since checkpoint-6, ≈ $")
        assert "due in about" in text_of(app)
        await sees(pilot, "■ stops after its next checkpoint", after=("c",))
        await to_screen(pilot, HomeScreen, "escape")
        await sees(pilot, "●■ job1")
        await to_screen(pilot, JobScreen, "enter")

        await to_screen(pilot, ConfirmScreen, "q")
        assert "1 job is to be stopped later" in text_of(app)
        await to_screen(pilot, JobScreen, "n")
        await to_screen(pilot, StopScreen, "s")
        assert "After checkpoint" not in text_of(app)
        await to_screen(pilot, JobScreen, "escape")
        assert "■ stops after its next checkpoint" in text_of(app)
        await to_screen(pilot, StopScreen, "s")
        await to_screen(pilot, JobScreen, "n")
        assert "■ stops after its next checkpoint" not in text_of(app)

        await to_screen(pilot, StopScreen, "s")
        await sees(pilot, "STOPPED", after=("y",))


async def test_the_question_does_not_wait_for_checkpoints_that_do_not_come(server: DeployingServer) -> None:
    server.on("GET", ".*/jobs/job1/checkpoints", Answer(hangs=True))
    async with dashboard_on(server, "job1", size=(100, 30), notifications=True) as (app, pilot):
        await to_screen(pilot, StopScreen, "s")
        assert "Unsaved work: reading …" in text_of(app)
        await to_screen(pilot, HomeScreen, "n")


@pytest.mark.proves("docs/guard.md", "In the dashboard")
async def test_job_is_stopped_on_conditions_while_the_dashboard_is_open(
    server: DeployingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.guard.watch.POLL_EVERY_S", 1.0)
    server.jobs = []
    live_run(server, "job1", [*STEADY, *["nan"] * 5])
    log = server.logs["job1"]
    server.logs["job1"] = log[: len(STEADY)]
    async with dashboard_on(server, "job1", size=(120, 30), notifications=True) as (app, pilot):
        await to_screen(pilot, StopScreen, "s")
        await to_screen(pilot, StopRulesScreen, "w")
        await pilot.press(*"later", "enter")
        await until(pilot, lambda: "no finding of docs/health.md" in " ".join(text_of(app).split()))
        app.screen.query_one(Input).value = "stalled loss-not-finite 900usd"
        await to_screen(pilot, HomeScreen, "enter")
        await sees(pilot, "stops on loss-not-finite, stalled")
        server.logs["job1"] = log
        await until(pilot, lambda: any("loss is NaN" in each.message for each in app._notifications))
        await until(pilot, lambda: "stopped" in text_of(app) and not app.planned_stops)
    assert sum(asked.path.endswith("/stop") for asked in server.asked) == 1
