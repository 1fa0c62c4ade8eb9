from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot

from support.dashboard import Dashboard, Heard, home, job_view, opened, pressed, text_of
from support.waiting import to_screen, until
from support.worlds import fleet, job
from tui.actions import ACTIONS, Scope
from tui.screens.job.screen import JobScreen
from tui.screens.messages import OpenJobRequested


async def test_an_action_is_offered_with_its_key_and_found_by_words_of_its_description() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:
        for typed, words in (("svg", "Screenshot"), ("settings", "Settings"), ("marked stop", "Stop  s")):
            await to_screen(pilot, CommandPalette, "colon")
            await pilot.press(*(key.replace(" ", "space") for key in typed))
            await until(pilot, lambda words=words: words in text_of(app))  # type: ignore[misc]
            await pressed(pilot, "escape")


async def test_the_palette_has_every_action_of_the_screen_and_the_open_jobs_checkpoints() -> None:
    app, own = job_view(), (Scope.JOB, Scope.LOGS, Scope.CHARTS)
    async with opened(app) as pilot:
        helps = {command.help for command in app.get_system_commands(app.screen)}
        for action in ACTIONS:
            if action.scope in (*own, Scope.SCREEN, Scope.APP) and action.id != "command_palette":
                assert action.help in helps
        await find(pilot, app, "checkpoints", "Show the job's checkpoints")
        screen = app.screen
        assert isinstance(screen, JobScreen)
        await until(pilot, lambda: screen.tab == "checkpoints")
        await to_screen(pilot, CommandPalette, "colon")
        await pilot.press(*"ckpoint3000")
        await until(pilot, lambda: "checkpoint checkpoint-3000" in text_of(app) and "lora" in text_of(app))


async def find(pilot: Pilot[Any], app: Dashboard, letters: str, words: str) -> None:
    """Type into the palette until it offers what has these words, and take it."""
    await to_screen(pilot, CommandPalette, "colon")
    await pilot.press(*letters)
    await until(pilot, lambda: words in text_of(app))
    while isinstance(app.screen, CommandPalette):
        await pressed(pilot, "enter")


async def test_jobs_and_projects_are_found_by_letters_of_their_names_and_parts_of_their_ids() -> None:
    app = home(fleet((job("vkcj4q7", name="llama-8b"), job("z", name="bert"))))
    asked = Heard(OpenJobRequested)
    async with opened(app, (80, 24), message_hook=asked) as pilot:
        for typed in ("lm8b", "vkcj4q7", "KCJ4"):
            asked.messages.clear()
            await find(pilot, app, typed, "job llama-8b")
            await until(pilot, lambda: [one.job.id for one in asked.messages] == ["vkcj4q7"])
        for typed, name in (("p-qwen3-g", "qwen3-grpo"), ("projectwhisper", "whisper")):
            await find(pilot, app, typed, f"project {name}")
            await until(pilot, lambda name=name: f"in {name}" in text_of(app))  # type: ignore[misc]


@pytest.mark.parametrize("folder", ["Downloads", ""])
async def test_a_picture_of_the_screen_is_saved_where_there_is_no_folder_of_downloads_too(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    for path in (here, tmp_path / folder):
        path.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DOWNLOAD_DIR", str(tmp_path / "Downloads"))
    monkeypatch.chdir(here)
    app = home()
    async with opened(app, (80, 24), notifications=True) as pilot:
        app.save_screen()
        await until(
            pilot, lambda: any(one.message.startswith("Screenshot saved") for one in app._notifications)
        )
    assert _pictures(tmp_path) == [tmp_path / folder if folder else here]


def _pictures(folder: Path) -> list[Path]:
    """The folders of the pictures that are there."""
    return [one.parent for one in folder.rglob("*.svg") if one.read_text("utf-8").startswith("<svg")]
