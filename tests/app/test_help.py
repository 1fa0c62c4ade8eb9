"""The help: its shortcuts are found by key or words, and it scrolls by half pages."""

import pytest
from textual.widgets import Input

from support.dashboard import home, opened, pressed, settle, text_of
from tui.app.palette import Palette
from tui.screens.help import HelpScreen
from tui.screens.home.screen import HomeScreen


@pytest.mark.proves("README.md", "Try it")
async def test_shortcuts_are_found_by_words_and_by_key_and_scrolled_by_half_pages() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:
        found = await pressed(pilot, "question_mark", "slash", *"csv")
        assert "Export the listed jobs as CSV or JSON." in found and "Submit a new job" not in found
        found = await pressed(pilot, "escape", "slash", "Q", "enter")
        assert "Show GPU capacity and the queue." in found and "Export" not in found
        assert "Submit a new job" in await pressed(pilot, "escape")
        assert "No matching shortcuts." in await pressed(pilot, "slash", *"nothing like it")
        first = await pressed(pilot, "escape")
        assert await pressed(pilot, "ctrl+d") != first
        assert await pressed(pilot, "ctrl+d", "ctrl+b") == first
        assert "Reverse sort order." not in first
        assert "Less common" in (last := await pressed(pilot, "G")) and "Reverse sort order." in last
        assert await pressed(pilot, "g") == first
        await pressed(pilot, "escape")
        assert not isinstance(app.screen, HelpScreen)


async def test_click_on_a_shortcut_does_what_its_key_does() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:

        async def click(words: str) -> None:
            await pressed(pilot, "question_mark", "slash", *words, "enter")
            *_, row = (y for y, line in enumerate(text_of(app).splitlines()) if words in line)
            await pilot.click(offset=(20, row))
            await settle(pilot)

        await click("Filter jobs")
        assert isinstance(app.screen, HomeScreen) and isinstance(app.focused, Input)
        await pressed(pilot, "escape")
        await click("Search jobs and actions")
        assert isinstance(app.screen, Palette)
