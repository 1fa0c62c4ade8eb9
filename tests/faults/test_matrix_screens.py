"""Every screen × every class of fault, over a real socket: what is said, what stays, and that it comes back.

One server for all, and an opened app for each screen, on a clock whose pauses are short. A fault begins,
the screen says which; what was there is there still; the fault ends, and nobody presses a key for that to
be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from screen_walks import LONGEST_PAUSE_S, WALKS, HastyDashboard, faulty_world

from support.dashboard import text_of
from support.faulty import FaultyServer
from support.remotes import remote_of
from support.waiting import until
from tui.screens.base import AppScreen
from tui.screens.home.screen import HomeScreen

SIZE = (120, 30)
REFUSING = {"401": "401", "403": "403", "404": "404"}
"""A server that is there and says no, and a word that tells which of these."""
FAILING = {"429": "429", "503": "503", "html": "HTML", "reset": "broke off"}
"""One that cannot answer, does not answer as it should, or is not to be reached."""
OF_THE_SAME_CLASS = {"400": "400", "truncated": "unexpected data (not JSON", "empty": "an empty response"}
"""Screens cannot tell these from 404 and from a web page: one of them meets them all the same."""
FAULT_ON_TABS = "404"
"""Tabs show parts of one screen, below the same lines: each is looked at under this one."""
ODD = "drift"
"""Fields and values that nobody knows, and missing ones: nothing to tell of."""
OPENED_UNDER = {"404": "404", "503": "503", "html": "HTML", "401": "401"}
"""A fault of each class for a screen that has nothing to show yet."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with faulty_world(tmp_path_factory.mktemp("world")) as (server, patch):
        patch.setattr("tui.analysis.connection.ROUTE_GRACE_S", LONGEST_PAUSE_S)
        for screen in ("preview", "compare"):  # timers of the screen's own
            patch.setattr(f"tui.screens.files.{screen}.RETRY_DELAY_S", LONGEST_PAUSE_S)
        yield server


def is_well(app: HastyDashboard, words: str) -> bool:
    """Whether nothing is wrong, and what the screen is for is on it."""
    shown = text_of(app)
    return words in shown and "● live" in shown and "✗" not in shown


def flat(app: HastyDashboard) -> str:
    """What is on the screen, wrapped words joined."""
    return " ".join(text_of(app).split())


def faults_for(name: str) -> dict[str, str]:
    """What that screen meets, and the words for it."""
    more = OF_THE_SAME_CLASS if name == "home" else {}
    return FAILING | more | (REFUSING if WALKS[name].asks else {})


@pytest.mark.parametrize("name", WALKS)
async def test_a_fault_is_told_what_was_there_stays_and_it_comes_back(
    name: str, faulty: FaultyServer
) -> None:
    walk = WALKS[name]
    faulty.set_faults()
    app = HastyDashboard(remote_of(faulty))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "job job00001" in text_of(app))
        await walk.go(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, walk.screen) and walk.words in text_of(app))
        for fault, words in faults_for(name).items():
            faulty.set_faults(fault)
            await pilot.press("r")
            await until(pilot, lambda words=words: words in flat(app))  # type: ignore[misc]
            for key, on_tab in walk.tabs if fault == FAULT_ON_TABS else ():
                await pilot.press(key)
                await until(pilot, lambda w=words, t=on_tab: w in flat(app) and t in text_of(app))  # type: ignore[misc]
            assert walk.words in text_of(app), fault
            faulty.set_faults()
            await until(pilot, lambda: is_well(app, walk.words))
        faulty.set_faults(ODD)
        await pilot.press("r")
        await until(pilot, lambda: ODD in [fault.kind for fault in faulty.struck()])
        assert "✗" not in text_of(app)
        assert isinstance(app.screen, walk.screen)


async def test_a_route_that_fails_alone_is_named_and_only_where_it_is_shown(faulty: FaultyServer) -> None:
    faulty.set_faults()
    app = HastyDashboard(remote_of(faulty))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "job job00001" in text_of(app))
        await WALKS["job"].go(app, pilot)
        await until(pilot, lambda: is_well(app, WALKS["job"].words))
        faulty.set_faults("503;paths=/checkpoints")
        await pilot.press("r")
        await until(pilot, lambda: "the checkpoints" in flat(app) and "503" in flat(app))
        await until(pilot, lambda: "○ stale" in text_of(app))
        await pilot.press("T")
        await until(pilot, lambda: is_well(app, WALKS["downloads"].words))
        await pilot.press("escape")
        await until(pilot, lambda: "the checkpoints" in flat(app))
        faulty.set_faults()
        await until(pilot, lambda: is_well(app, WALKS["job"].words))


OPENED = ("home", *(name for name, walk in WALKS.items() if walk.opens_asking))


@pytest.mark.parametrize("fault", OPENED_UNDER)
async def test_a_screen_opened_under_a_fault_says_so_and_fills_when_it_ends(
    fault: str, faulty: FaultyServer
) -> None:
    words = OPENED_UNDER[fault]
    faulty.set_faults(fault)
    app = HastyDashboard(remote_of(faulty))
    async with app.run_test(size=SIZE) as pilot:
        for name in OPENED:
            walk = WALKS[name]
            faulty.set_faults(fault)
            await walk.go(app, pilot)
            await until(pilot, lambda w=walk: isinstance(app.screen, w.screen))  # type: ignore[misc]
            await until(pilot, lambda: words in flat(app))
            faulty.set_faults()
            await until(pilot, lambda w=walk: is_well(app, w.words))  # type: ignore[misc]
            if name != "home":
                await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, HomeScreen))


def test_every_screen_of_the_app_is_in_the_matrix() -> None:
    found, left = set(), [AppScreen]
    while left:
        one = left.pop()
        derived = one.__subclasses__()
        left += derived
        if not derived:
            found.add(one)
    assert found == {walk.screen for walk in WALKS.values()}
