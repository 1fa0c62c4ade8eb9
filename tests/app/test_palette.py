import pytest

from support.dashboard import Dashboard, home, job_view, settle, text_of
from tui.actions import ACTIONS, Scope
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen


@pytest.mark.parametrize(
    ("app", "own"),
    [(home(), (Scope.HOME,)), (job_view(), (Scope.JOB, Scope.LOGS, Scope.CHARTS))],
    ids=["home", "job"],
)
async def test_the_palette_offers_every_action_of_the_screen(app: Dashboard, own: tuple[Scope, ...]) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        helps = {command.help for command in app.get_system_commands(app.screen)}
    for action in ACTIONS:
        if action.scope in (*own, Scope.SCREEN, Scope.APP) and action.id != "command_palette":
            assert action.help in helps


async def test_an_action_is_found_by_its_name_and_done() -> None:
    app = job_view()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("colon")
        await settle(pilot)
        await pilot.press(*"checkpoints")
        while "The checkpoints that the job has written" not in text_of(app):
            await pilot.pause()
        await pilot.press("enter", "enter")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, JobScreen)
        assert screen.tab == "checkpoints"


async def test_quit_is_one_key() -> None:
    app = home()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        await pilot.press("q")
    assert app.return_code == 0
