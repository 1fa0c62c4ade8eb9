"""Stopping a job: the question names what is lost, and the job can stop after its next checkpoint."""

from __future__ import annotations

from support.dashboard import text_of
from support.emulator import running_emulator
from support.remotes import remote_of
from support.waiting import until
from tui.app import BtTuiApp
from tui.screens.dialogs import ConfirmScreen, StopScreen
from tui.screens.job.screen import JobScreen


async def test_a_job_is_stopped_after_its_next_checkpoint_or_not_or_now() -> None:
    with running_emulator("demo") as demo:
        app = BtTuiApp(remote_of(demo))
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await until(pilot, lambda: "llama-70b" in text_of(app))
            await pilot.press("slash", *"llama-70b-sft-v3", "enter", "enter")
            await until(pilot, lambda: "checkpoint-4000" in text_of(app) and "≈ $" in text_of(app))
            await pilot.press("s")
            await until(pilot, lambda: isinstance(app.screen, StopScreen))
            assert "since checkpoint-4000, ≈ $" in text_of(app)
            assert "due in about" in text_of(app)
            await pilot.press("c")
            await until(pilot, lambda: "stops after next checkpoint" in text_of(app))

            await pilot.press("q")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            assert "1 job stops after the next checkpoint" in text_of(app)
            await pilot.press("n", "s")
            await until(pilot, lambda: isinstance(app.screen, StopScreen))
            assert "After next checkpoint" not in text_of(app)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, JobScreen))
            assert "stops after next checkpoint" in text_of(app)
            await pilot.press("s")
            await until(pilot, lambda: isinstance(app.screen, StopScreen))
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, JobScreen))
            assert "stops after next checkpoint" not in text_of(app)

            await pilot.press("s")
            await until(pilot, lambda: isinstance(app.screen, StopScreen))
            await pilot.press("y")
            await until(pilot, lambda: "STOPPED" in text_of(app))
