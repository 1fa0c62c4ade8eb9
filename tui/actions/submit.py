"""On the submit screen."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "submit",
        Scope.SUBMIT,
        "ctrl+s",
        "submit",
        "Submit the job that is shown.",
        in_footer=True,
        dangerous=True,
    ),
)
