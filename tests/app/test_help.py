"""The help: its shortcuts are found by key or words, and it scrolls by half pages."""

import pytest

from support.dashboard import home, opened, pressed
from tui.screens.help import HelpScreen


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
