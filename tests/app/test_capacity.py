"""The capacity screen: its sights, and what people do with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from support.dashboard import pressed, text_of
from support.fake_baseten import Answer, FakeBaseten, job
from support.fake_runs import serve_capacity
from support.waiting import dashboard_on, sees, to_screen, until
from tui.app import BtTuiApp
from tui.screens.capacity import CapacityScreen
from tui.screens.job.screen import JobScreen


@pytest.fixture
def baseten() -> Iterator[FakeBaseten]:
    with FakeBaseten() as server:
        a10g = cast(dict[str, object], job()["instance_type"]) | {"gpu_type": "A10G", "gpu_count": 1}
        server.jobs = [
            job("late", "PENDING", name="late-one", node_count=2),
            job("first", "PENDING", name="first-one", priority=5),
            job("holds", "RUNNING", name="big-one", node_count=2),
            job("small", "RUNNING", name="small-one", instance_type=a10g),
        ]
        serve_capacity(server)
        yield server


@asynccontextmanager
async def capacity(
    baseten: FakeBaseten, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[BtTuiApp, Pilot[Any]]]:
    async with dashboard_on(baseten, "4 jobs", size=size) as (app, pilot):
        await pilot.press("Q")
        await until(pilot, lambda: isinstance(app.screen, CapacityScreen) and "first-one" in text_of(app))
        yield app, pilot


async def test_limits_use_and_the_queue_at_a_glance_and_the_way_to_a_job(
    baseten: FakeBaseten, tmp_path: Path
) -> None:
    async with capacity(baseten) as (app, pilot):
        await sees(pilot, "32/64")
        screen = text_of(app)
        assert "2 waiting for 24 GPUs" in screen
        assert "16/16" in screen and "=cmd()" in screen  # the team's
        assert "━!" in screen  # full, not told by colour alone
        assert screen.index("1. pending") < screen.index("first-one") < screen.index("late-one")
        assert screen.index("late-one") < screen.index("big-one")
        await pressed(pilot, "E")
        app.screen.query_one("#file", Input).value = str(tmp_path / "c.csv")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "c-jobs.csv").exists)
        written = (tmp_path / "c.csv").read_text()
        assert written.splitlines()[0].startswith("scope,team,gpu_type") and "'=cmd()" in written
        await until(pilot, lambda: not app.screen.query("#box"))
        await pilot.press("tab", "home", "a")
        await until(pilot, lambda: "big-one" not in text_of(app))
        assert "small-one" in text_of(app)
        await sees(pilot, "big-one", after=("j",))
        await to_screen(pilot, JobScreen, "a", "tab", "home", "enter")
        assert app.screen.job.id == "first"  # type: ignore[attr-defined]


async def test_no_route_no_right_empty_and_failing_are_four_sights_and_the_queue_stays(
    baseten: FakeBaseten,
) -> None:
    route = ("GET", "/v1/training/capacity")
    sights = (
        (Answer({"code": "NOT_FOUND", "message": "no"}, status=404), "doesn't report its capacity"),
        (Answer({"code": "FORBIDDEN", "message": "no"}, status=403), "can't read the capacity"),
        (Answer({"gpu_capacities": [], "team_gpu_capacities": []}), "No GPU limits"),
        (Answer({"code": "ODD", "message": "[red]odd[/]"}, status=422), "[red]odd[/]"),
    )
    baseten.on(*route, sights[0][0])
    async with capacity(baseten, (60, 20)) as (app, pilot):
        for answer, words in sights:
            baseten.on(*route, answer)
            await pilot.press("r")
            await until(pilot, lambda words=words: words in " ".join(text_of(app).split()))  # type: ignore[misc]
            await sees(pilot, "first-one")
