"""Check the table of actions against the screens that carry them out."""

from collections import Counter
from dataclasses import replace

import pytest

from support.dashboard import home, job_view, opened, pressed, text_of
from support.pages import all_of
from support.worlds import fleet, run
from tui.actions.table import ACTIONS, JOB_TABS, Scope, actions_of
from tui.app import BtTuiApp
from tui.screens.base import AppScreen
from tui.screens.job.screen import JobScreen

SCREENS = all_of(AppScreen)
TOGETHER = {
    *(screen.SCOPES for screen in SCREENS if screen is not JobScreen),
    *((Scope.JOB, Scope.RECORDING, *scopes) for scopes in JOB_TABS.values()),
}
"""Scopes whose keys work at the same time."""


def owners(scope: Scope) -> list[type]:
    if scope is Scope.APP:
        return [BtTuiApp]
    return [screen for screen in SCREENS if scope in (*screen.SCOPES, Scope.SCREEN)]


@pytest.mark.proves("docs/keys.md", "Keys")
def test_every_action_is_done_by_the_owner_of_its_scope() -> None:
    undone = [
        f"{action.scope}.{action.id}"
        for action in ACTIONS
        if not owners(action.scope)
        or not all(callable(getattr(owner, f"action_{action.id}", None)) for owner in owners(action.scope))
    ]
    assert undone == []


@pytest.mark.parametrize("scopes", sorted(TOGETHER))
@pytest.mark.proves("docs/keys.md", "Keys")
def test_no_key_means_two_things_at_once(scopes: tuple[Scope, ...]) -> None:
    keys = [key for action in actions_of(*scopes, Scope.SCREEN, Scope.APP) for key in action.keys.split(",")]
    assert [key for key, uses in Counter(keys).items() if uses > 1] == []


@pytest.mark.parametrize("tab", ["", *JOB_TABS])
async def test_no_widget_takes_the_key_of_an_action(tab: str) -> None:
    """A widget with the focus gets each key first. What enter opens is the row's or the line's."""
    app = job_view(tab=tab) if tab else home()
    async with opened(app):
        screen = app.screen
        assert isinstance(screen, AppScreen) and screen.focused is not None
        bound = screen.active_bindings
        taken = {
            key: f"{action.scope}.{action.id} is {bound[key].binding.action} of {bound[key].node}"
            for action in actions_of(*screen.scopes, Scope.SCREEN)
            for key in action.keys.split(",")
            if key != "enter" and key in bound and action.id not in bound[key].binding.action
        }
        assert taken == {}


ABOUT_A_JOB = ("open_job", "stop_job", "recreate_job", "delete_job", "mark", "bookmark", "snooze", "copy_id")
ABOUT_A_JOB += ("copy_status", "open_browser", "next_alarmed", "open_cache", "compare", "export")


@pytest.mark.proves("docs/keys.md", "Home")
async def test_keys_about_a_job_say_why_they_do_nothing_without_one() -> None:
    app = home(fleet(jobs=()))
    silent = set(ABOUT_A_JOB)
    async with opened(app) as pilot:
        for action in actions_of(Scope.HOME):
            app.clear_notifications()
            if action.id in ABOUT_A_JOB:
                await pressed(pilot, action.keys.split(",")[0])
                silent -= {action.id} if len(app._notifications) else set()
    assert silent == set()


ANSWERS = {
    "logs": {
        "exclamation_mark": "No problems found with this job.",
        "n": "No search yet.",
        "N": "No search yet.",
        "full_stop": "Not side by side; | splits the log by node.",
        "comma": "Not side by side; | splits the log by node.",
    },
    "metrics": {
        "minus": "The whole run is shown.",
        "g": "The whole run is shown.",
        "G": "The newest samples are shown.",
        "P": "Pinned: it comes first, and Live shows it.",
    },
}


@pytest.mark.parametrize("tab", ANSWERS)
@pytest.mark.proves("docs/keys.md", "Log")
@pytest.mark.proves("docs/keys.md", "Metrics")
async def test_keys_of_no_use_now_say_why(tab: str) -> None:
    app, answers = job_view(replace(run(), findings=()), tab=tab), dict[str, str]()
    async with opened(app) as pilot:
        for key in ANSWERS[tab]:
            app.clear_notifications()
            await pressed(pilot, key)
            answers[key] = " ".join(notice.message for notice in app._notifications)
    assert answers == ANSWERS[tab]


@pytest.mark.proves("docs/keys.md", "Charts")
async def test_key_for_nodes_shows_them_on_metrics_and_leaves_again() -> None:
    app = job_view(replace(run(), findings=()), tab="metrics")
    async with opened(app) as pilot:
        assert "node-0" not in text_of(app)
        for key in ("p", "u", "H"):
            assert "node-0" in await pressed(pilot, key)
            assert "node-0" not in await pressed(pilot, "escape")
        assert "node-0" in await pressed(pilot, "p")
        assert "node-0" not in await pressed(pilot, "p")


@pytest.mark.proves("docs/keys.md", "Job")
async def test_node_chosen_where_none_is_shown_is_named() -> None:
    app = job_view(tab="details")
    async with opened(app) as pilot:
        await pressed(pilot, "right_square_bracket", "left_square_bracket")
        said = [notice.message for notice in app._notifications]
        assert said == ["Log and charts show node-0.", "Log and charts show all nodes."]
