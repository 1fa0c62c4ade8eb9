"""Every screen × every class of fault, over a real socket: what is said, what stays, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest
from screen_walks import (
    LONGEST_PAUSE_S,
    SIZE,
    WALKS,
    QuickRetryApp,
    Walk,
    faulty_world,
    first_job,
    home_of,
    shows,
    to_review,
    words_on,
)
from textual.pilot import Pilot

from support.faulty import FaultyServer
from support.pages import all_of
from support.waiting import to_screen, until
from tui.analysis.transfers import DownloadRequest, TransferState
from tui.forms.deployment import REVIEW
from tui.screens.base import Page
from tui.screens.deploy.answers import QuestionPane
from tui.screens.deploy.screen import DeployPage, DeployScreen
from tui.screens.dialogs import ConfirmScreen, DownloadFolderScreen
from tui.screens.downloads import DownloadsPage, DownloadsScreen
from tui.screens.home.screen import HomePage, HomeScreen
from tui.screens.job.page import JobPage
from tui.screens.job.screen import JobScreen
from tui.screens.messages import DownloadRequested
from tui.screens.submit import SubmitScreen

FAULTS = {
    "404": "404",
    "401": "refused the key",
    "403": "403",
    "400": "400",
    "429": "429",
    "503": "503",
    "html": "HTML",
    "reset": "broke off",
    "truncated": "unexpected data (not JSON",
    "empty": "an empty response",
}
"""Every class of fault, and words that tell which it is."""
REFUSALS = frozenset({"400", "401", "403", "404"})
ODD = "drift"
"""Fields and values that nobody knows, and missing ones: nothing to tell of."""
OPENING, LATER = ("404", "503", "html"), ("503", "401")
"""The faults that each screen is opened under, one after the other, and those that strike later."""
ACTING = ("401", "reset")
"""A refusal and an outage: what becomes of the others is in ``test_matrix_resources``."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with faulty_world(tmp_path_factory.mktemp("world")) as (server, patch):
        patch.setattr("tui.analysis.connection.ROUTE_GRACE_S", LONGEST_PAUSE_S)
        patch.setattr("tui.screens.differences.RETRY_DELAY_S", LONGEST_PAUSE_S)
        yield server


def is_well(app: QuickRetryApp, words: str) -> bool:
    """Whether nothing is wrong, and what the screen is for is on it."""
    return shows(app, words, "● live") and "✗" not in words_on(app)


async def strike(app: QuickRetryApp, pilot: Pilot[Any], faulty: FaultyServer, fault: str) -> None:
    faulty.set_faults(fault)
    await pilot.press("r")
    await until(pilot, partial(shows, app, FAULTS[fault]))


async def see_tabs(app: QuickRetryApp, pilot: Pilot[Any], walk: Walk, *words: str) -> None:
    for key, on_tab in walk.tabs:
        await pilot.press(key)
        await until(pilot, partial(shows, app, on_tab, *words))


async def see_sizes(app: QuickRetryApp, pilot: Pilot[Any]) -> None:
    for size, theme in (((60, 20), "bt-light"), ((160, 50), "bt-light"), (SIZE, "bt-dark")):
        app.theme = theme
        await pilot.resize_terminal(*size)
        await until(pilot, partial(is_well, app, ""))


async def test_a_walk_through_every_screen_under_fault_after_fault(faulty: FaultyServer) -> None:
    """A screen names each that it opens under and fills when they end; under others, what was there stays."""
    assert all_of(Page) - set(WALKS) == set(), "a page without a way to it: add it to WALKS"
    async with home_of(faulty) as (app, pilot):
        for page, walk in WALKS.items():
            await until(pilot, partial(is_well, app, WALKS[HomePage].words))
            faulty.set_faults(OPENING[0] if walk.opens_asking else "")
            await walk.go(app, pilot)
            await until(pilot, lambda p=page: p is HomePage or not isinstance(app.screen, HomeScreen))  # type: ignore[misc]
            for fault in OPENING if walk.opens_asking else ():
                await strike(app, pilot, faulty, fault)
            faulty.set_faults()
            await until(pilot, partial(is_well, app, walk.words))
            await see_sizes(app, pilot)
            await see_tabs(app, pilot, walk)
            for fault in FAULTS if page is HomePage else LATER:
                if not walk.asks and fault in REFUSALS:
                    continue
                await strike(app, pilot, faulty, fault)
                await see_tabs(app, pilot, walk, FAULTS[fault])
                await until(pilot, partial(shows, app, walk.words))  # after layout
                if page is HomePage:
                    faulty.set_faults()
                    await until(pilot, partial(is_well, app, walk.words))
            faulty.set_faults(ODD)
            await pilot.press("r")
            await until(pilot, lambda w=walk: shows(app, w.words) and "✗" not in words_on(app))  # type: ignore[misc]
            faulty.set_faults()
            while not isinstance(app.screen, HomeScreen):
                await pilot.press("escape")


async def test_a_route_that_fails_alone_is_named_and_only_where_it_is_shown(faulty: FaultyServer) -> None:
    async with home_of(faulty) as (app, pilot):
        await WALKS[JobPage].go(app, pilot)
        await until(pilot, partial(is_well, app, WALKS[JobPage].words))
        faulty.set_faults("503;paths=/checkpoints")
        await pilot.press("r")
        await until(pilot, partial(shows, app, "the checkpoints", "503", "○ stale"))
        await pilot.press("T")
        await until(pilot, partial(is_well, app, WALKS[DownloadsPage].words))
        await pilot.press("escape")
        await until(pilot, partial(shows, app, "the checkpoints"))
        faulty.set_faults()
        await until(pilot, partial(is_well, app, WALKS[JobPage].words))


async def test_home_names_a_log_store_that_fails_alone(faulty: FaultyServer) -> None:
    async with home_of(faulty) as (app, pilot):
        await until(pilot, partial(is_well, app, WALKS[HomePage].words))
        faulty.set_faults("503;paths=/logs")
        await until(pilot, partial(shows, app, "the log", "503", "○ stale"))
        faulty.set_faults()
        await until(pilot, partial(is_well, app, WALKS[HomePage].words))


async def test_a_download_that_cannot_be_planned_says_why_and_is_tried_again(faulty: FaultyServer) -> None:
    async with home_of(faulty) as (app, pilot):
        job = first_job(app)
        await pilot.press("T")
        for fault in ACTING:
            faulty.set_faults(f"{fault};paths=/checkpoint_files")
            app.post_message(DownloadRequested(DownloadRequest(job, checkpoints=("checkpoint-100",))))
            await until(pilot, lambda: isinstance(app.screen, DownloadFolderScreen))
            await to_screen(pilot, DownloadsScreen, "enter")
            await until(pilot, lambda: app.transfers.items[-1:] and app.transfers.items[-1].error != "")
            assert FAULTS[fault] in app.transfers.items[-1].error
            await until(pilot, partial(shows, app, FAULTS[fault]))
            faulty.set_faults()
            await pilot.press("t")
            await until(pilot, lambda: app.transfers.items[-1].state is TransferState.DONE)


def step_of(screen: DeployScreen) -> str:
    """The question that takes the next key as its answer; empty while none does."""
    form, panes = screen.snapshot.form, list(screen.query(QuestionPane))
    if screen.snapshot.stage != "asking" or not panes or not panes[-1].has_focus_within:
        return ""
    return form.question.id if panes[-1].question.id == form.question.id else ""


async def test_a_deployment_that_fails_says_why_keeps_the_answers_and_is_made_once(
    faulty: FaultyServer,
) -> None:
    async with home_of(faulty) as (app, pilot):
        await WALKS[DeployPage].go(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, DeployScreen))
        screen = app.screen
        assert isinstance(screen, DeployScreen)
        await until(pilot, lambda: step_of(screen) != "")
        while (step := step_of(screen)) != REVIEW:
            await pilot.press("ctrl+s")
            await until(pilot, lambda s=step: step_of(screen) not in ("", s))  # type: ignore[misc]

        async def deploy() -> None:
            await to_screen(pilot, ConfirmScreen, "enter")
            await pilot.press("y")
            await until(pilot, lambda: app.screen is screen)

        for fault in ACTING:
            faulty.set_faults(fault)
            await deploy()
            await until(pilot, lambda f=fault: FAULTS[f] in screen.snapshot.error)  # type: ignore[misc]
            await until(pilot, lambda f=fault: step_of(screen) == REVIEW and shows(app, FAULTS[f]))  # type: ignore[misc]
        faulty.set_faults()
        await deploy()
        await until(pilot, lambda: screen.snapshot.stage == "following")


async def test_a_submission_that_fails_says_why_keeps_the_review_and_is_made_once(
    faulty: FaultyServer,
) -> None:
    async with home_of(faulty) as (app, pilot):
        await to_review(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, SubmitScreen) and shows(app, "from-the-screen"))
        screen = app.screen
        assert isinstance(screen, SubmitScreen)
        await until(pilot, lambda: screen.snapshot.can_submit)
        for path, fault in product(("/", "/jobs"), ACTING):  # in the review, or the last request
            faulty.set_faults(f"{fault};paths={path}")
            await pilot.press("ctrl+s")
            await until(pilot, lambda f=fault: FAULTS[f] in screen.snapshot.error)  # type: ignore[misc]
            await until(pilot, lambda: screen.snapshot.stage == "reviewing")
            await until(pilot, partial(shows, app, FAULTS[fault]))
            assert (screen.snapshot.can_submit, faulty.handled("POST", "/jobs")) == (path != "/", 0)
            assert shows(app, "check bt-tui jobs") == (path != "/" and fault == "reset")
        faulty.set_faults()
        await to_screen(pilot, JobScreen, "ctrl+s")
        assert faulty.handled("POST", "/jobs") == 1
