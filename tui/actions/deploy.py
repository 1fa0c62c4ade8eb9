"""In the deploy wizard."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("next", Scope.DEPLOY, "ctrl+s", "next", "Go on with what is answered.", in_footer=True),
    Action(
        "previous", Scope.DEPLOY, "ctrl+b", "before", "The question before; answers are kept.", in_footer=True
    ),
    Action(
        "copy", Scope.DEPLOY, "ctrl+y", "copy", "Copy what is shown: the config, or how to call the model."
    ),
)
