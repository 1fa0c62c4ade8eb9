from pathlib import Path
from typing import Any, cast

import pytest
from textual.command import Command, CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.pilot import Pilot

from support.dashboard import Dashboard, Heard, home, job_view, opened, pressed
from support.waiting import sees, to_screen, until
from support.worlds import fleet, job
from tui.actions.table import ACTIONS, Scope
from tui.screens.base import OpenPage
from tui.screens.home.screen import HomeScreen


@pytest.mark.proves("README.md", "Try it")
async def test_the_palette_has_every_action_of_the_screen_and_the_open_jobs_checkpoints() -> None:
    app, own = job_view(), (Scope.JOB, Scope.LOGS, Scope.CHARTS)
    async with opened(app) as pilot:
        helps = {command.help for command in app.get_system_commands(app.screen)}
        for action in ACTIONS:
            if action.scope in (*own, Scope.SCREEN, Scope.APP) and action.id != "command_palette":
                assert action.help in helps
        await find(pilot, app, "checkpoints", "Show the job's checkpoints")
        await until(pilot, lambda: app.screen.tab == "checkpoints")
        await to_screen(pilot, CommandPalette, "colon")
        await sees(pilot, "checkpoint checkpoint-3000", "lora", after=(*"ckpoint3000",))


async def test_palette_lists_jobs_as_on_home_then_the_actions_of_the_screen() -> None:
    app = home(fleet(tuple(job(f"job{number}", name=f"bert-{number}") for number in range(9))))
    async with opened(app, (80, 40)) as pilot:
        home_screen = app.screen
        await to_screen(pilot, CommandPalette, "colon")
        await until(pilot, lambda: bool(app.screen.query_one(CommandList).option_count))
        options = app.screen.query_one(CommandList).options
        texts = [str(cast(Command, option).hit.text) for option in options]
        offered = [f"job {row.name}" for row in home_screen._jobs.rows[:5]]
    assert texts[:5] == offered
    assert texts[5].startswith("Open") and texts.index("Theme") > texts.index("Stop  s")


async def find(pilot: Pilot[Any], app: Dashboard, letters: str, words: str) -> None:
    await to_screen(pilot, CommandPalette, "colon")
    await sees(pilot, words, after=(*letters,))
    while isinstance(app.screen, CommandPalette):
        await pressed(pilot, "enter")


async def test_actions_are_found_by_words_jobs_and_projects_by_letters_of_names_and_parts_of_ids() -> None:
    app = home(fleet((job("vkcj4q7", name="llama-8b"), job("z", name="bert"))))
    asked = Heard(OpenPage)
    async with opened(app, (80, 24), message_hook=asked) as pilot:
        for typed, words in (("svg", "Screenshot"), ("settings", "Settings"), ("marked stop", "Stop the m")):
            await to_screen(pilot, CommandPalette, "colon")
            await sees(pilot, words, after=[key.replace(" ", "space") for key in typed])
            await pressed(pilot, "escape")
        for typed in ("lm8b", "KCJ4"):
            asked.messages.clear()
            await find(pilot, app, typed, "job llama-8b")
            await until(pilot, lambda: [one.page.job.id for one in asked.messages] == ["vkcj4q7"])
        await find(pilot, app, "p-qwen3-g", "project qwen3-grpo")
        await sees(pilot, "in qwen3-grpo")


async def test_a_picture_of_the_screen_is_saved_where_there_is_no_folder_of_downloads_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads, here = tmp_path / "Downloads", tmp_path / "here"
    for path in (downloads, here):
        path.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DOWNLOAD_DIR", str(downloads))
    monkeypatch.chdir(here)
    app = home()
    async with opened(app, (80, 24), notifications=True) as pilot:
        for folder in (downloads, here):
            app.save_screen()
            await until(
                pilot, lambda: any(one.message.startswith("Screenshot") for one in app._notifications)
            )
            (picture,) = folder.glob("*.svg")
            assert picture.read_text("utf-8").startswith("<svg")
            app.clear_notifications()
            picture.unlink()
            if folder is downloads:
                downloads.rmdir()


async def test_key_does_nothing_in_a_palette_whose_list_is_gone() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:
        await to_screen(pilot, CommandPalette, "colon")
        palette = app.screen
        await palette.query_one(CommandList).remove()
        await pilot.press("down")
        assert app.screen is palette
        await to_screen(pilot, HomeScreen, "escape")


async def test_widget_that_is_missing_because_its_screen_is_being_closed_is_no_crash() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:
        await to_screen(pilot, CommandPalette, "colon")
        palette = app.screen
        closing = app.pop_screen()
        await palette.query(CommandList).remove()
        palette.call_next(lambda: palette.query_one(CommandList))
        await closing
        await pilot.pause()
        assert isinstance(app.screen, HomeScreen)


async def test_widget_that_is_missing_in_an_open_screen_is_a_crash() -> None:
    app = home()
    with pytest.raises(NoMatches):
        async with opened(app, (80, 24)) as pilot:
            app.screen.call_next(lambda: app.screen.query_one(CommandList))
            await pilot.pause()
