"""``--readonly`` in the dashboard: every key that would change something says why it does not."""

from __future__ import annotations

from functools import partial

import pytest
from textual.screen import Screen

from support.dashboard import READ_ONLY, Dashboard, home, opened, pressed, settle, text_of
from support.worlds import StubRunFeed, run
from tui.actions.table import ActionFlag, Scope, actions_of
from tui.screens.job.screen import JobScreen

SIZE = (100, 30)


def changing(scope: Scope) -> list[str]:
    return [action.keys.split(",")[0] for action in actions_of(scope) if ActionFlag.DANGEROUS in action.flags]


def test_the_table_knows_what_changes_something() -> None:
    assert {"s", "R", "X", "n", "d"} <= set(changing(Scope.HOME))
    assert {"s", "R", "d"} <= set(changing(Scope.JOB))


def job_screen() -> Screen[None]:
    shown = run()
    return JobScreen(shown.job, partial(StubRunFeed, shown))


@pytest.mark.setting("readonly")
@pytest.mark.parametrize(
    ("app", "scope"),
    [(home(settings=READ_ONLY), Scope.HOME), (Dashboard(job_screen, settings=READ_ONLY), Scope.JOB)],
    ids=["home", "job"],
)
@pytest.mark.proves("README.md", "On your own workspace")
async def test_every_key_that_changes_something_is_refused(app: Dashboard, scope: Scope) -> None:
    async with opened(app, SIZE, notifications=True) as pilot:
        screen = app.screen
        for key in changing(scope):
            await pressed(pilot, key)
            assert app.screen is screen, key
            assert "read-only" in text_of(app), key
            app.clear_notifications()
            await settle(pilot)
        footer = text_of(app).splitlines()[-1]
        assert [label for label in ("stop", "new", "run again", "deploy") if f" {label} " in footer] == []


async def test_help_and_palette_say_what_is_off() -> None:
    app = home(settings=READ_ONLY)
    async with opened(app, (100, 50)) as pilot:
        offered = {each.title.split("  ")[0]: each.help for each in app.get_system_commands(app.screen)}
        text = await pressed(pilot, "question_mark")
        assert "Deploy checkpoints of the selected job. Off: read-only." in text
        assert "Sort by the next column" in text
        assert offered["Stop"].endswith("Off: read-only.")
        assert not offered["Sort"].endswith("Off: read-only.")
