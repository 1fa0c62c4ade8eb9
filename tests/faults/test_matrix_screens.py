"""Every screen × every class of fault, over a real socket: what is said, what stays, and that it comes back.

One server for all, and an app for each walk, on a clock whose pauses are short. A fault begins, the screen
says which; what was there is there still; the fault ends, and nobody presses a key for that to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from screen_walks import LONGEST_PAUSE_S, WALKS, HastyDashboard, faulty_world, home_of, words_on
from textual.pilot import Pilot

from support.dashboard import text_of
from support.faulty import FaultyServer
from support.waiting import until
from tui.screens.base import AppScreen
from tui.screens.home.screen import HomeScreen

FAULTS = {
    "404": "404",
    "401": "401",
    "403": "403",
    "400": "400",
    "429": "429",
    "503": "503",
    "html": "HTML",
    "reset": "broke off",
    "truncated": "unexpected data (not JSON",
    "empty": "an empty response",
}
"""Every class of fault, and a word that tells which it is."""
REFUSALS = frozenset({"400", "401", "403", "404"})
ODD = "drift"
"""Fields and values that nobody knows, and missing ones: nothing to tell of."""
OPENING, LATER = ("404", "503", "html"), ("503", "404", "401")
"""The faults that each screen is opened under, one after the other, and those that strike later."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with faulty_world(tmp_path_factory.mktemp("world")) as (server, patch):
        patch.setattr("tui.analysis.connection.ROUTE_GRACE_S", LONGEST_PAUSE_S)
        for screen in ("preview", "compare"):  # timers of the screen's own
            patch.setattr(f"tui.screens.files.{screen}.RETRY_DELAY_S", LONGEST_PAUSE_S)
        yield server


def shows(app: HastyDashboard, *words: str) -> bool:
    return all(each in words_on(app) for each in words)


def is_well(app: HastyDashboard, words: str) -> bool:
    """Whether nothing is wrong, and what the screen is for is on it."""
    shown = text_of(app)
    return words in shown and "● live" in shown and "✗" not in shown


async def test_home_tells_every_fault_keeps_what_was_there_and_comes_back(faulty: FaultyServer) -> None:
    async with home_of(faulty) as (app, pilot):
        for fault in FAULTS:
            await until(pilot, lambda: is_well(app, WALKS["home"].words))
            await strike(app, pilot, faulty, fault)
            assert WALKS["home"].words in text_of(app), fault
            faulty.set_faults()


async def strike(app: HastyDashboard, pilot: Pilot[Any], faulty: FaultyServer, fault: str) -> None:
    faulty.set_faults(fault)
    await pilot.press("r")
    await until(pilot, lambda: FAULTS[fault] in words_on(app))


async def test_a_walk_through_every_screen_under_fault_after_fault(faulty: FaultyServer) -> None:
    """A screen names each that it opens under and fills when they end; under others, what was there stays."""
    async with home_of(faulty) as (app, pilot):
        for name, walk in WALKS.items():
            await until(pilot, lambda: is_well(app, WALKS["home"].words))
            faulty.set_faults(OPENING[0] if walk.opens_asking else "")
            await walk.go(app, pilot)
            await until(pilot, lambda w=walk: isinstance(app.screen, w.screen))  # type: ignore[misc]
            for fault in OPENING if walk.opens_asking else ():
                await strike(app, pilot, faulty, fault)
            faulty.set_faults()
            await until(pilot, partial(is_well, app, walk.words))
            for fault in LATER:
                if not walk.asks and fault in REFUSALS:
                    continue
                await strike(app, pilot, faulty, fault)
                for key, on_tab in walk.tabs:
                    await pilot.press(key)
                    await until(pilot, partial(shows, app, FAULTS[fault], on_tab))
                assert walk.words in text_of(app), name
            faulty.set_faults(ODD)
            await pilot.press("r")
            await until(pilot, lambda w=walk: w.words in text_of(app) and "✗" not in text_of(app))  # type: ignore[misc]
            faulty.set_faults()
            while not isinstance(app.screen, HomeScreen):
                await pilot.press("escape")


async def test_a_route_that_fails_alone_is_named_and_only_where_it_is_shown(faulty: FaultyServer) -> None:
    async with home_of(faulty) as (app, pilot):
        await WALKS["job"].go(app, pilot)
        await until(pilot, lambda: is_well(app, WALKS["job"].words))
        faulty.set_faults("503;paths=/checkpoints")
        await pilot.press("r")
        await until(pilot, lambda: "the checkpoints" in words_on(app) and "503" in words_on(app))
        await until(pilot, lambda: "○ stale" in text_of(app))
        await pilot.press("T")
        await until(pilot, lambda: is_well(app, WALKS["downloads"].words))
        await pilot.press("escape")
        await until(pilot, lambda: "the checkpoints" in words_on(app))
        faulty.set_faults()
        await until(pilot, lambda: is_well(app, WALKS["job"].words))


def test_every_screen_of_the_app_is_in_the_matrix() -> None:
    found, left = set(), [AppScreen]
    while left:
        one = left.pop()
        derived = one.__subclasses__()
        left += derived
        if not derived:
            found.add(one)
    assert found == {walk.screen for walk in WALKS.values()}
