"""Actions of the submit screen."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "submit",
        Scope.SUBMIT,
        "ctrl+s",
        "submit",
        "Submit this job.",
        in_footer=True,
        dangerous=True,
    ),
)
