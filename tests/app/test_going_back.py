"""Back and forward through the screens that were visited; teams and projects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import pytest
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.widgets import Static

from api_client.remotes import resolve_remote
from support.dashboard import text_of
from support.fake_baseten import FakeBaseten, job, project
from support.waiting import sees, until
from tui.app import BtTuiApp
from tui.screens.cache import CacheScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.settings.remembered import Memory

SIZE = (100, 30)


@pytest.fixture
def server() -> Iterator[FakeBaseten]:
    with FakeBaseten() as baseten:
        baseten.projects = [
            project("p1", "alpha", team_name="Vision"),
            project("p2", "beta", team_name="Speech"),
        ]
        baseten.jobs = [
            job(
                name,
                "COMPLETED",
                name=f"run-{name}",
                training_project_id=home,
                training_project={"id": home, "name": home},
            )
            for name, home in (("one", "p1"), ("two", "p2"), ("three", "p2"))
        ]
        yield baseten


def dashboard(server: FakeBaseten, memory: Memory | None = None) -> BtTuiApp:
    return BtTuiApp(resolve_remote(environ=server.environ()), memory=memory)


async def is_shown(pilot: Pilot[Any], kind: type, words: str = "", *, after: str = "") -> None:
    """Press a key, and wait until the screen is drawn: the next key is that screen's."""
    app: Any = pilot.app
    await pilot.press(*after.split())
    await until(
        pilot, lambda: isinstance(app.screen, kind) and bool(text_of(app).strip()) and words in text_of(app)
    )
    await pilot.pause()


async def test_what_comes_while_the_dashboard_exits_is_no_crash(server: FakeBaseten) -> None:
    app = dashboard(server)
    async with app.run_test(size=SIZE) as pilot:
        await is_shown(pilot, HomeScreen, "run-one")
        app.exit()
        app.screen.call_next(app.screen.mount, Static("a chart of data that came late"))
    assert app.return_code == 0


async def test_back_and_forward_are_those_of_a_browser(server: FakeBaseten) -> None:
    app = dashboard(server)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await is_shown(pilot, HomeScreen, "run-one")
        await is_shown(pilot, JobScreen, "run-", after="enter")
        first = app.screen.job.id  # type: ignore[attr-defined]
        await is_shown(pilot, CacheScreen, after="C")
        await is_shown(pilot, JobScreen, after="backspace")
        await is_shown(pilot, HomeScreen, after="alt+left")
        await is_shown(pilot, JobScreen, after="alt+right")
        assert app.screen.job.id == first  # type: ignore[attr-defined]
        await is_shown(pilot, CacheScreen, after="F")
        await is_shown(pilot, JobScreen, "‹ ", after="escape")  # is one step back too
        while isinstance(app.screen, JobScreen):  # the header moves while its facts come in
            await pilot.click(offset=(text_of(app).splitlines()[0].index("‹"), 0))
        await is_shown(pilot, HomeScreen)
        await is_shown(pilot, CacheScreen, "‹ Cache", after="F F")
        await sees(pilot, "No earlier screen", after=("alt+left", "alt+left", "alt+left"))
        await pilot.press("slash", *"F0", "backspace")  # in a field they are the field's keys
        assert app.screen.query_text == "F"


async def test_screens_of_a_job_opened_again_and_again_are_not_kept(server: FakeBaseten) -> None:
    app = dashboard(server)
    closed: list[WeakSet[DOMNode]] = []
    async with app.run_test(size=SIZE) as pilot:
        await is_shown(pilot, HomeScreen, "run-one")
        for _ in range(5):
            await is_shown(pilot, JobScreen, after="enter")
            closed.append(WeakSet(app.screen.walk_children(with_self=True)))
            await is_shown(pilot, HomeScreen, after="escape")

        def are_gone() -> bool:
            gc.collect()
            # What draws or reads at the end may hold some for a while.
            return sum(not widgets for widgets in closed) > 2

        await until(pilot, are_gone)


async def test_job_header_has_a_way_back_for_the_mouse_on_a_narrow_terminal(server: FakeBaseten) -> None:
    server.jobs[0]["name"] = "a-long-name-of-a-run-with-its-settings-and-seeds"
    app = dashboard(server)
    async with app.run_test(size=(60, 20)) as pilot:
        await is_shown(pilot, HomeScreen, "a-long-name")
        await is_shown(pilot, JobScreen, "COMPLETED", after="enter")
        await pilot.click(offset=(1, 0))
        await is_shown(pilot, HomeScreen)


async def choose(pilot: Pilot[Any], letters: str, words: str) -> None:
    await sees(pilot, "Which team or project?", after=("0",))
    await sees(pilot, words, after=(*letters,))
    while not isinstance(pilot.app.screen, HomeScreen):
        await pilot.press("enter")
        await pilot.pause()


async def test_a_team_s_jobs_alone_are_shown_also_the_next_time(server: FakeBaseten) -> None:
    memory = Memory()
    for start in range(2):
        app = dashboard(server, memory)
        async with app.run_test(size=SIZE) as pilot:
            if not start:
                await is_shown(pilot, HomeScreen, "run-one")
                await choose(pilot, "speech", "team Speech")
            await is_shown(pilot, HomeScreen, "run-two")
            await until(pilot, lambda app=app: "run-one" not in text_of(app))  # type: ignore[misc]
            assert "Speech" in text_of(app).splitlines()[0]
    async with (app := dashboard(server, memory)).run_test(size=SIZE) as pilot:
        await is_shown(pilot, HomeScreen, "run-two")
        await sees(pilot, "1 project, 1 job, 0 running", after=("0",))
        await pilot.press("escape")
        await choose(pilot, "allteams", "all teams and projects")
        await is_shown(pilot, HomeScreen, "run-one")
        assert "Speech" not in text_of(app).splitlines()[0]


async def test_a_project_of_another_team_is_found_from_a_job(server: FakeBaseten) -> None:
    app = dashboard(server)
    async with app.run_test(size=SIZE) as pilot:
        await is_shown(pilot, HomeScreen, "run-one")
        await choose(pilot, "vision", "team Vision")
        await until(pilot, lambda: "run-two" not in text_of(app))
        await is_shown(pilot, JobScreen, after="enter")
        await choose(pilot, "beta", "project beta")
        await is_shown(pilot, HomeScreen, "run-two")
        assert "run-one" not in text_of(app)


async def test_home_below_a_job_shows_new_jobs_only_once_it_is_back(server: FakeBaseten) -> None:
    app = dashboard(server)
    async with app.run_test(size=SIZE) as pilot:
        await is_shown(pilot, HomeScreen, "run-one")
        home: Any = app.screen
        await is_shown(pilot, JobScreen, "run-", after="enter")
        server.jobs = [*server.jobs, job("four", "COMPLETED", name="run-four")]
        home.action_refresh()
        await until(pilot, lambda: len(home.snapshot.jobs) == 4)
        await pilot.pause()
        assert len(home.query_one("#jobs").rows) == 3
        assert not home.is_current, "what is refreshed there would paint the job's screen again"
        await is_shown(pilot, HomeScreen, "run-four", after="escape")
        assert home.is_current
