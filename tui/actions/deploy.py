"""Actions of the deploy wizard."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("next", Scope.DEPLOY, "ctrl+s", "next", "Next step.", in_footer=True),
    Action(
        "previous", Scope.DEPLOY, "ctrl+b", "previous", "Previous step (answers are kept).", in_footer=True
    ),
    Action("copy", Scope.DEPLOY, "ctrl+y", "copy", "Copy the config, or the code that calls the model."),
)
