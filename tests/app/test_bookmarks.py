"""Bookmarks of jobs: set on Home, shown by a star, found by the filter, kept until the next time."""

from functools import partial
from pathlib import Path

from textual.screen import Screen

from support.dashboard import LIVE, Dashboard, opened, text_of
from support.waiting import until
from support.worlds import JOBS, StubFleetFeed, fleet
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import BookmarkRequested
from tui.settings.remembered import Memory


def dashboard(path: Path) -> Dashboard:
    memory = Memory(path)

    def first() -> Screen[None]:
        screen = HomeScreen(partial(StubFleetFeed, fleet()), "acme", memory)
        screen.connection = LIVE
        return screen

    return Dashboard(first, memory=memory)


async def test_a_bookmark_is_shown_found_and_kept_and_a_damaged_memory_has_none(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    path.write_text('{"bookmarks": {"jobs": [1, null]}}')
    app = dashboard(path)
    async with opened(app, (80, 24), notifications=True) as pilot:
        assert "10 jobs" in text_of(app) and "★" not in text_of(app)
        await pilot.press("B")
        await until(pilot, lambda: "★ qwen3-grpo-7 bookmarked" in text_of(app))
        assert "★ qwen3-grpo-7" in text_of(app)
    app = dashboard(path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "★ qwen3-grpo-7" in text_of(app))
        await pilot.press("slash", *"is", "colon", *"bookmarked", "enter")
        await until(pilot, lambda: "1 of 10 jobs" in text_of(app))
        await pilot.press("B")
        await until(pilot, lambda: "No job matches" in text_of(app))


async def test_bookmark_of_a_home_that_opens_is_kept_without_a_crash(tmp_path: Path) -> None:
    """Its key was typed on the Home before, such as that of another remote."""
    app = dashboard(tmp_path / "layout.json")
    async with opened(app, (80, 24)) as pilot:
        opening = HomeScreen(partial(StubFleetFeed, fleet()), "acme")
        app.push_screen(opening)
        app.jobs.toggle_bookmark(BookmarkRequested(JOBS[0]))
        await until(pilot, lambda: text_of(app).count("★") == 1)
        assert opening.bookmarks == (JOBS[0].id,)
