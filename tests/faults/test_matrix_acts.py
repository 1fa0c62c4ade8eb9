"""Screens that ask the server only when somebody does something there × every class of fault.

Downloads, the deploy wizard and the submission: what is done under a fault says why it failed, loses no
answer and does nothing by halves; done again once the fault is over, it works, and it was done once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from screen_walks import (
    WALKS,
    HastyDashboard,
    faulty_world,
    first_job,
    home_of,
    to_review,
    words_on,
)
from textual.pilot import Pilot

from support.dashboard import text_of
from support.faulty import FaultyServer
from support.waiting import to_screen, until
from tui.analysis.transfers import DownloadRequest, TransferState
from tui.screens.deploy.answers import QuestionPane
from tui.screens.deploy.screen import DeployScreen
from tui.screens.dialogs import ConfirmScreen, DownloadFolderScreen
from tui.screens.downloads import DownloadsScreen
from tui.screens.job.screen import JobScreen
from tui.screens.messages import DownloadRequested
from tui.screens.submit import SubmitScreen
from tui.wizard.state import REVIEW

FAULTS = {"401": "refused the key", "reset": "broke off"}
"""A refusal and an outage: what becomes of the others is in ``test_matrix_resources``."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with faulty_world(tmp_path_factory.mktemp("world")) as (server, _):
        yield server


async def test_a_download_that_cannot_be_planned_says_why_and_is_tried_again(faulty: FaultyServer) -> None:
    async with home_of(faulty) as (app, pilot):
        job = first_job(app)
        await pilot.press("T")
        for fault, words in FAULTS.items():
            faulty.set_faults(f"{fault};paths=/checkpoint_files")
            app.post_message(DownloadRequested(DownloadRequest(job, checkpoints=("checkpoint-100",))))
            await until(pilot, lambda: isinstance(app.screen, DownloadFolderScreen))
            await to_screen(pilot, DownloadsScreen, "enter")
            await until(pilot, lambda: app.transfers.items[-1:] and app.transfers.items[-1].error != "")
            assert words in app.transfers.items[-1].error
            await until(pilot, lambda w=words: w in words_on(app))  # type: ignore[misc]
            faulty.set_faults()
            await pilot.press("t")
            await until(pilot, lambda: app.transfers.items[-1].state is TransferState.DONE)


def step_of(screen: DeployScreen) -> str:
    """The question that waits for an answer; empty while none does."""
    walk, panes = screen.snapshot.walk, list(screen.query(QuestionPane))
    if screen.snapshot.stage != "asking" or walk is None or not panes:
        return ""
    return walk.step.id if panes[-1].step.id == walk.step.id else ""


async def to_the_last_question(app: HastyDashboard, pilot: Pilot[Any]) -> DeployScreen:
    await WALKS["deploy"].go(app, pilot)
    await until(pilot, lambda: isinstance(app.screen, DeployScreen))
    screen = app.screen
    assert isinstance(screen, DeployScreen)
    while True:
        await until(pilot, lambda: step_of(screen) != "")
        step = step_of(screen)
        if step == REVIEW:
            return screen
        await pilot.press("ctrl+s")
        await until(pilot, lambda s=step: step_of(screen) not in ("", s))  # type: ignore[misc]


async def test_a_deployment_that_fails_says_why_keeps_the_answers_and_is_made_once(
    faulty: FaultyServer,
) -> None:
    async with home_of(faulty) as (app, pilot):
        screen = await to_the_last_question(app, pilot)

        async def deploy() -> None:
            await to_screen(pilot, ConfirmScreen, "enter")
            await pilot.press("y")
            await until(pilot, lambda: app.screen is screen)

        for fault, words in FAULTS.items():
            faulty.set_faults(fault)
            await deploy()
            await until(pilot, lambda: step_of(screen) == REVIEW and screen.snapshot.error != "")
            assert words in screen.snapshot.error
            await until(pilot, lambda w=words: w in words_on(app))  # type: ignore[misc]
        faulty.set_faults()
        await deploy()
        await until(pilot, lambda: screen.snapshot.stage == "following")


async def test_a_submission_that_fails_says_why_keeps_the_review_and_is_made_once(
    faulty: FaultyServer,
) -> None:
    async with home_of(faulty) as (app, pilot):
        await to_review(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, SubmitScreen) and "from-the-screen" in text_of(app))
        screen = app.screen
        assert isinstance(screen, SubmitScreen)
        await until(pilot, lambda: screen.snapshot.can_submit)

        for fault, words in FAULTS.items():
            faulty.set_faults(fault)
            await pilot.press("ctrl+s")
            await until(pilot, lambda w=words: w in screen.snapshot.error)  # type: ignore[misc]
            await until(pilot, lambda: screen.snapshot.stage == "reviewing")
            await until(pilot, lambda w=words: w in words_on(app))  # type: ignore[misc]
            assert faulty.handled("POST", "/jobs") == 0
        faulty.set_faults()
        await to_screen(pilot, JobScreen, "ctrl+s")
        assert faulty.handled("POST", "/jobs") == 1
