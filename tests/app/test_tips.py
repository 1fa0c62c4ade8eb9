"""Tips for newcomers: one at a time, and each goes away."""

from __future__ import annotations

from pathlib import Path

from support.dashboard import home, settle, text_of
from support.waiting import sees, until
from support.worlds import JOBS, fleet
from tui.actions.table import ACTIONS
from tui.app.tips import MAX_TIMES_SHOWN, TIPS
from tui.settings.model import Configuration, Loaded
from tui.settings.remembered import Memory

OPEN, FILTER, HELP, MARK = "opens the selected job", "filters, e.g.", "shows all keyboard", "marks jobs"


def test_every_tip_is_about_an_action() -> None:
    assert TIPS.keys() <= {f"{action.scope}.{action.id}" for action in ACTIONS}


async def test_what_was_done_is_not_shown_again(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "layout.json")
    app = home(tips=True, memory=memory)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, OPEN)
        await pilot.press("slash", "escape")
        await pilot.press("question_mark", "escape")
        await sees(pilot, MARK, after=("enter",))
        assert FILTER not in text_of(app)
        await pilot.click("TipLine")
        await until(pilot, lambda: "tip " not in text_of(app))
    again = home(tips=True, memory=Memory(tmp_path / "layout.json"))
    async with again.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(again.screen.query("TipLine")) == 1)
        again.tips.show()  # type: ignore[attr-defined]
        assert "tip " not in text_of(again)


async def test_tip_hides_no_job_above_the_preview() -> None:
    app = home(fleet(JOBS[:1]), tips=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, OPEN)
        await settle(pilot)
        assert app.screen.query_one("#preview").display
        jobs = app.screen.query_one("#jobs")
        assert jobs.size.height == jobs.virtual_size.height


async def test_one_that_is_never_done_is_shown_a_few_times_only() -> None:
    memory = Memory()
    memory.put(tips={next(iter(TIPS)): MAX_TIMES_SHOWN})
    app = home(tips=True, memory=memory)
    async with app.run_test(size=(60, 24)) as pilot:
        await sees(pilot, "tip ")
        assert FILTER in text_of(app)


async def test_low_screen_keeps_its_lines_and_shows_no_tip() -> None:
    app = home(tips=True)
    async with app.run_test(size=(60, 24)) as pilot:
        await sees(pilot, OPEN)
        await pilot.resize_terminal(60, 20)
        app.tips.show()
        await settle(pilot)
        assert OPEN not in text_of(app)


async def test_it_names_the_key_of_the_settings_and_without_any_job_says_nothing_of_one() -> None:
    settings = Loaded(Configuration(keys={"app.help": "f5"}))
    app = home(fleet(()), tips=True, settings=settings)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, f"tip  f5 {HELP}")
        assert OPEN not in text_of(app)
