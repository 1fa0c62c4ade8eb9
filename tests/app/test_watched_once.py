"""A job that its own screen watches is not read a second time for Home, which shows what the screen read."""

from __future__ import annotations

import asyncio

import pytest

from api_client.models import TrainingJob
from support.fake_baseten import FakeBaseten, job
from support.fake_runs import live_run
from support.remotes import remote_of
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import is_all_checked
from tui.feeds.previews import PreviewFeed
from tui.feeds.run import RunFeed
from tui.readers.session import Session


async def test_home_previews_a_watched_job_without_requests_and_keeps_its_curve_after_its_end() -> None:
    with FakeBaseten() as baseten:
        live_run(baseten, "run")
        session = Session(remote_of(baseten))
        is_read, is_shown, has_changed = asyncio.Event(), asyncio.Event(), asyncio.Event()

        def take(run: RunSnapshot) -> None:
            if is_all_checked(run):
                is_read.set()

        running = TrainingJob.model_validate(baseten.jobs[-1])
        screen = RunFeed(
            session, running, publish=take, on_log=lambda _: None, on_gone=lambda: None, span=None
        )
        home = PreviewFeed(session, is_shown=is_shown, on_change=has_changed.set)
        home.watch([running], [], ["run"])
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(screen.run())
            await asyncio.sleep(0)
            with pytest.raises(StopIteration):
                home.poll(running).send(None)
            assert home.previews["run"].reading, "what its screen has not read yet"
            await is_read.wait()
            with pytest.raises(StopIteration):
                home.poll(running).send(None)  # ends without waiting for an answer
            shown = home.previews["run"]
            watching.cancel()
            await asyncio.wait([watching])
            assert not session.watchers, "from now on, Home reads it"

            home.watch([], [TrainingJob.model_validate(job("run", "COMPLETED"))], ["run"])
            is_shown.set()
            reading = tasks.create_task(home.run())
            await has_changed.wait()
            reading.cancel()
        await session.client.aclose()
    assert (shown.log_read, shown.reading, shown.gpu_use) == (True, False, pytest.approx(0.95))
    assert shown.last_lines[-1] == baseten.logs["run"][-1]["message"]
    assert shown.progress is not None and shown.progress.step == len(baseten.logs["run"])
    assert home.previews["run"].curve == shown.curve != ()
