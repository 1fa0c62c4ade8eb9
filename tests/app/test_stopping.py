"""Stopping a job: the question names what is lost, and the job can stop after its next checkpoint."""

from __future__ import annotations

import time

import pytest

from support.dashboard import job_view, opened, text_of
from support.deploying_server import DeployingServer, listed_checkpoint
from support.fake_baseten import Answer, ReceivedRequest
from support.fake_runs import iso, live_run
from support.remotes import remote_of
from support.waiting import to_screen, until
from support.worlds import run
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding
from tui.app import BtTuiApp
from tui.screens.dialogs import ConfirmScreen, StopScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen


@pytest.mark.proves("docs/commands.md", "Submit a job")
async def test_a_stalled_run_may_never_save_again() -> None:
    stalled = HealthFinding(KINDS["stalled"], "critical", "stalled")
    app = job_view(run(findings=(stalled,)))
    async with opened(app) as pilot:
        await to_screen(pilot, StopScreen, "s")
        assert "it may never save its next checkpoint" in " ".join(text_of(app).replace("│", " ").split())


@pytest.mark.proves("docs/commands.md", "Submit a job")
async def test_a_job_is_stopped_after_its_next_checkpoint_or_not_or_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.app.job_changes.LIST_TIMEOUT_S", 60.0)
    with DeployingServer() as server:
        server.jobs, now_s = [], time.time()
        live_run(server, "job1")
        server.checkpoints = [
            listed_checkpoint(f"checkpoint-{number}", created_at=iso(now_s + 600 * (number - 6.5)))
            for number in range(1, 7)
        ]
        prices = [{"instance_type": server.jobs[0]["instance_type"], "price": 0.5}]
        server.on("GET", "/v1/instance_type_prices", Answer(body={"instance_types": prices}))

        def stop(_asked: ReceivedRequest) -> Answer:
            server.jobs[0] |= {"current_status": "TRAINING_JOB_STOPPED"}
            return Answer(body={"training_job": server.jobs[0]})

        server.on("POST", ".*/jobs/job1/stop", stop)
        app = BtTuiApp(remote_of(server))
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await until(pilot, lambda: "job1" in text_of(app) and app.screen.snapshot.prices)  # type: ignore[attr-defined]
            await to_screen(pilot, StopScreen, "s")
            assert "since checkpoint-6, ≈ $" in text_of(app)
            await to_screen(pilot, HomeScreen, "escape")
            await to_screen(pilot, JobScreen, "enter")
            await until(pilot, lambda: "checkpoint-6" in text_of(app) and "≤ $" in text_of(app))
            await to_screen(pilot, StopScreen, "s")
            assert "since checkpoint-6, ≈ $" in text_of(app)
            assert "due in about" in text_of(app)
            await pilot.press("c")
            await until(pilot, lambda: "stops after next checkpoint" in text_of(app))
            await to_screen(pilot, HomeScreen, "escape")
            await until(pilot, lambda: "●■ job1" in text_of(app))
            await to_screen(pilot, JobScreen, "enter")

            await to_screen(pilot, ConfirmScreen, "q")
            assert "1 job stops after the next checkpoint" in text_of(app)
            await to_screen(pilot, JobScreen, "n")
            await to_screen(pilot, StopScreen, "s")
            assert "After next checkpoint" not in text_of(app)
            await to_screen(pilot, JobScreen, "escape")
            assert "stops after next checkpoint" in text_of(app)
            await to_screen(pilot, StopScreen, "s")
            await to_screen(pilot, JobScreen, "n")
            assert "stops after next checkpoint" not in text_of(app)

            await to_screen(pilot, StopScreen, "s")
            await pilot.press("y")
            await until(pilot, lambda: "STOPPED" in text_of(app))
