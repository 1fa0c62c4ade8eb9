"""The table of actions against what does them, and against the README that prints it."""

from pathlib import Path

import pytest

from tui.actions import ACTIONS, SCOPE_TITLES, Action, Scope, actions_of
from tui.actions.keymap import key_signs
from tui.app import BtTuiApp
from tui.screens.base import AppScreen
from tui.screens.cache import CacheScreen
from tui.screens.capacity import CapacityScreen
from tui.screens.compare import CompareRunsScreen
from tui.screens.deploy.screen import DeployScreen
from tui.screens.downloads import DownloadsScreen
from tui.screens.files.screen import FilesScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import TAB_SCOPES, JobScreen
from tui.screens.submit import SubmitScreen

README = Path(__file__).parents[2] / "README.md"
SCREENS: tuple[type[AppScreen], ...] = (
    HomeScreen,
    JobScreen,
    CacheScreen,
    CompareRunsScreen,
    CapacityScreen,
    FilesScreen,
    DownloadsScreen,
    SubmitScreen,
    DeployScreen,
)
TOGETHER = {
    *(screen.SCOPES for screen in SCREENS if screen is not JobScreen),
    *((Scope.JOB, *scopes) for scopes in TAB_SCOPES.values()),
}
"""Scopes whose keys work at the same time."""


def owners(scope: Scope) -> list[type]:
    if scope is Scope.APP:
        return [BtTuiApp]
    return [screen for screen in SCREENS if scope in (*screen.SCOPES, Scope.SCREEN)]


def identity(action: Action) -> str:
    return f"{action.scope}.{action.id}"


@pytest.mark.parametrize("action", ACTIONS, ids=identity)
def test_every_action_is_done_by_the_owner_of_its_scope(action: Action) -> None:
    assert owners(action.scope)
    for owner in owners(action.scope):
        assert callable(getattr(owner, f"action_{action.id}", None))


@pytest.mark.parametrize("scopes", sorted(TOGETHER))
def test_no_key_means_two_things_at_once(scopes: tuple[Scope, ...]) -> None:
    keys = [key for action in actions_of(*scopes, Scope.SCREEN, Scope.APP) for key in action.keys.split(",")]
    assert len(keys) == len(set(keys))


def test_every_help_is_a_sentence() -> None:
    for action in ACTIONS:
        assert action.help[0].isupper()
        assert action.help.endswith(".")


def table_of_keys() -> str:
    lines = ["| Where | Key | |", "|---|---|---|"]
    for scope in Scope:
        for action in ACTIONS:
            if action.scope is scope:
                keys = " ".join(f"`{sign}`" for sign in key_signs(action.keys).split(" "))
                lines.append(f"| {SCOPE_TITLES[scope]} | {keys} | {action.help} |")
    return "\n".join(lines)


def test_the_readme_has_the_same_keys() -> None:
    assert table_of_keys() in README.read_text(encoding="utf-8")
