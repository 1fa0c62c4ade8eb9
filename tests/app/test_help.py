"""The help: its shortcuts are found by key or words, and it scrolls by half pages."""

from support.dashboard import home, opened, pressed, text_of
from tui.screens.help import HelpScreen


async def test_shortcuts_are_found_by_words_and_by_key() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:
        await pressed(pilot, "question_mark", "slash", *"csv")
        assert "Export the listed jobs as CSV or JSON." in text_of(app)
        assert "Submit a new job" not in text_of(app)
        await pressed(pilot, "escape", "slash", "Q", "enter")
        assert "Show GPU capacity and the queue." in text_of(app)
        assert "Export" not in text_of(app)
        await pressed(pilot, "escape")
        assert "Submit a new job" in text_of(app)
        await pressed(pilot, "slash", *"nothing like it")
        assert "No matching shortcuts." in text_of(app)
        await pressed(pilot, "escape", "escape")
        assert not isinstance(app.screen, HelpScreen)


async def test_it_scrolls_by_half_pages_and_to_its_ends() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:
        await pressed(pilot, "question_mark")
        first = text_of(app)
        await pressed(pilot, "ctrl+d")
        half = text_of(app)
        assert half != first
        await pressed(pilot, "ctrl+d", "ctrl+b")
        assert text_of(app) == first
        await pressed(pilot, "G")
        assert "Navigation" in text_of(app)
        await pressed(pilot, "g")
        assert text_of(app) == first
