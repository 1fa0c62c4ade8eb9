"""The table of actions against what does them, and against the README that prints it."""

from pathlib import Path

import pytest

from tui.actions import ACTIONS, Action, Scope
from tui.app import BtTuiApp
from tui.keymap import key_signs
from tui.screens.deploy.screen import DeployScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.screens.submit.screen import SubmitScreen

README = Path(__file__).parents[2] / "README.md"
OWNERS = {
    Scope.HOME: (HomeScreen,),
    Scope.JOB: (JobScreen,),
    Scope.SUBMIT: (SubmitScreen,),
    Scope.DEPLOY: (DeployScreen,),
    Scope.SCREEN: (HomeScreen, JobScreen, SubmitScreen, DeployScreen),
    Scope.APP: (BtTuiApp,),
}
HEADINGS = {
    Scope.HOME: "Home",
    Scope.JOB: "Job",
    Scope.SUBMIT: "Submit",
    Scope.DEPLOY: "Deploy",
    Scope.SCREEN: "Each",
    Scope.APP: "All",
}


def identity(action: Action) -> str:
    return f"{action.scope}.{action.id}"


@pytest.mark.parametrize("action", ACTIONS, ids=identity)
def test_every_action_is_done_by_the_owner_of_its_scope(action: Action) -> None:
    for owner in OWNERS[action.scope]:
        assert callable(getattr(owner, f"action_{action.id}", None))


def test_no_key_means_two_things_at_once() -> None:
    for scopes in [
        (own, Scope.SCREEN, Scope.APP) for own in (Scope.HOME, Scope.JOB, Scope.SUBMIT, Scope.DEPLOY)
    ]:
        keys = [key for action in ACTIONS if action.scope in scopes for key in action.keys.split(",")]
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
                lines.append(f"| {HEADINGS[scope]} | {keys} | {action.help} |")
    return "\n".join(lines)


def test_the_readme_has_the_same_keys() -> None:
    assert table_of_keys() in README.read_text(encoding="utf-8")
