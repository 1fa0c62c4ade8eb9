"""Where the keyboard is: a list that is shown has it, with a cursor, however the list was reached."""

from dataclasses import replace
from functools import partial

import pytest

from support.dashboard import Dashboard, home, opened, pressed, settle, text_of
from support.worlds import StubRunFeed, fleet, log_lines, run
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.transfers import Transfer, Transfers, TransferState
from tui.feeds.run_log import LogPart
from tui.screens.home.screen import HomeScreen
from tui.screens.job.log_pane import LogPane
from tui.screens.job.screen import JobScreen
from tui.widgets.row_table import RowTable
from tui.widgets.status_footer import KeyHints

SIZE = (80, 24)
NOTHING_YET = replace(
    run(), metrics=None, metrics_at=None, health_metrics=None, checkpoints=None, progress=None
)
FOCUS = {"metrics": "ChartGrid", "checkpoints": "RowTable"}


def opened_on(tab: str, first: RunSnapshot = NOTHING_YET) -> Dashboard:
    """A job opened directly on a tab, whose data is still to come."""
    return Dashboard(lambda: JobScreen(first.job, partial(StubRunFeed, first, lines=()), tab=tab))


def focused(app: Dashboard) -> str:
    widget = app.screen.focused
    return type(widget).__name__ if widget is not None and widget.display else "nothing"


@pytest.mark.parametrize("tab", FOCUS)
async def test_a_tab_that_is_opened_directly_has_the_keyboard_before_and_after_its_data_comes(
    tab: str,
) -> None:
    app = opened_on(tab)
    async with opened(app, SIZE) as pilot:
        assert focused(app) == FOCUS[tab]
        app.screen.post_message(JobScreen.Published(run()))
        app.screen.query_one(LogPane).add_part(LogPart(log_lines()))
        await settle(pilot)
        assert focused(app) == FOCUS[tab]


async def test_a_filter_that_leaves_nothing_gives_the_cursor_back() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        await pilot.press("j")
        jobs = app.screen.query_one("#jobs", RowTable)
        chosen = jobs.cursor_key
        await pressed(pilot, "/", *"nosuchjob", "enter")
        assert not jobs.rows and focused(app) == "RowTable"
        await pressed(pilot, "escape")
        assert jobs.cursor_key == chosen and focused(app) == "RowTable"
        app.screen.post_message(HomeScreen.Published(replace(fleet(), jobs=tuple(reversed(fleet().jobs)))))
        await settle(pilot)
        assert jobs.cursor_key == chosen


async def test_downloads_that_begin_while_their_list_is_open_get_the_keyboard() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        await pressed(pilot, "T")
        first, second = (Transfer(name, name, "/downloads", TransferState.ACTIVE) for name in ("1", "2"))
        for items in ((first,), (), (first, second)):
            app.transfers = Transfers(items)
            await settle(pilot)
            assert app.screen.focused is app.screen.query_one("#transfers")
        await pilot.press("k")
        assert app.screen.query_one("#transfers", RowTable).cursor_key == "1"


async def test_footer_asks_no_screen_while_the_dashboard_closes() -> None:
    app = home()
    async with app.run_test() as pilot:
        await settle(pilot)
        screen, stack = app.screen, app._screen_stack
        screens = [*stack]
        stack.clear()
        try:
            screen.query_one(KeyHints)._bindings_changed(screen)
        finally:
            stack.extend(screens)
        assert "filter" in text_of(app).splitlines()[-1]
