"""The footer's hints: whole or not at all, help always, and a click does what the key would."""

import pytest
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.widgets import Input

from support.dashboard import home, job_view, opened, pressed, settle, text_of
from support.worlds import job, run
from tui.analysis.transfers import Transfers
from tui.app import BtTuiApp
from tui.screens.help import HelpScreen
from tui.widgets.status_footer import KeyHint, KeyHints, StatusFooter, fitting

OWNER = DOMNode()
HINTS = [
    KeyHint(key, key, label, action, OWNER)
    for key, label, action in (
        ("f", "follow", "follow"),
        ("d", "deploy a checkpoint", "deploy"),
        ("s", "stop", "stop_job"),
        ("?", "help", "help"),
        ("q", "quit", "quit"),
    )
]


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (80, "fds?q"),
        (52, "fds?"),
        (44, "fd?"),
        (40, "fs?q"),  # what does not fit gives way to what does
        (18, "f?"),
        (8, "?"),
        (7, ""),
        (0, ""),
    ],
)
def test_only_whole_hints_and_help_before_all_others(width: int, keys: str) -> None:
    assert "".join(hint.key for hint in fitting(HINTS, width)) == keys


async def test_a_click_does_what_the_key_does_and_a_field_says_how_to_leave_it() -> None:
    app = home()
    async with opened(app, (60, 20)) as pilot:
        await click(pilot, "slash")
        assert isinstance(app.focused, Input)
        assert footer_of(app).split("●")[0].strip() == "⏎ confirm  esc back"
        await click(pilot, "escape")
        assert not isinstance(app.focused, Input)
        await click(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)


async def test_spare_hints_follow_the_others_where_there_is_room() -> None:
    app = home()
    async with opened(app, (80, 24)) as pilot:
        assert footer_of(app).split("●")[0].split()[-2:] == ["q", "quit"]
        await pilot.resize_terminal(120, 30)
        await settle(pilot)
        assert ": commands  C cache  d deploy  c compare" in footer_of(app)


def footer_of(app: BtTuiApp) -> str:
    return text_of(app).splitlines()[-1]


async def test_the_footer_of_a_job_offers_what_its_state_allows() -> None:
    app = job_view(run(job("failed", "FAILED"), checkpoints=()), tab="logs")
    async with opened(app, (120, 24)) as pilot:
        assert "R run again" in footer_of(app)
        assert not any(hint in footer_of(app) for hint in ("f follow", "d deploy", "s stop", "n next match"))
        await pressed(pilot, "slash", "a", "enter")
        assert "n next match" in footer_of(app)
        await pressed(pilot, "5")
        assert "n next match" not in footer_of(app)


async def click(pilot: Pilot[object], key: str) -> None:
    hints = pilot.app.screen.query_one(KeyHints)
    at = next(at for at, hint in hints._hints_by_x() if hint.key == key)
    await pilot.click(KeyHints, offset=(at, 0))
    await settle(pilot)


async def test_footer_of_a_screen_that_closes_while_it_opens_shows_nothing() -> None:
    app = home()
    async with opened(app) as pilot:
        footer = app.screen.query_one(StatusFooter)
        await footer.remove_children()
        footer._show_downloads(Transfers())
        footer._show_recordings(frozenset({"job1"}))
        await pilot.pause()
