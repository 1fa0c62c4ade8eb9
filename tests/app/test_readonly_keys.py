"""``--readonly`` in the dashboard: every key that would change something says why it does not."""

from __future__ import annotations

from functools import partial

import pytest
from textual.screen import Screen

from support.dashboard import Dashboard, home, settle, text_of
from support.worlds import StubRunFeed, run
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen

SIZE = (100, 30)


@pytest.mark.parametrize("key", ["s", "R", "X"])
async def test_home_refuses(key: str) -> None:
    app = home(readonly=True)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await pilot.press(key)
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert "read-only" in text_of(app)


@pytest.mark.parametrize("key", ["s", "R"])
async def test_the_job_refuses(key: str) -> None:
    def first() -> Screen[None]:
        shown = run()
        return JobScreen(shown.job, partial(StubRunFeed, shown))

    app = Dashboard(first, readonly=True)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await pilot.press(key)
        await settle(pilot)
        assert isinstance(app.screen, JobScreen)
        assert "read-only" in text_of(app)
