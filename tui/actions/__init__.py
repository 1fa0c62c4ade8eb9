"""All actions of the dashboard.

Footer, help screen, command palette and docs/keys.md read this list, so they cannot disagree. The
action ``id`` is handled by the method ``action_<id>`` of the scope's owner, a screen or the app, unless
it only opens a page.
"""

from __future__ import annotations

from functools import cache

from tui.actions.table import ACTIONS, JOB_TABS, SCOPE_TITLES, Action, ActionFlag, Scope

__all__ = [
    "ACTIONS",
    "JOB_TABS",
    "SCOPE_TITLES",
    "Action",
    "ActionFlag",
    "Scope",
    "actions_named",
    "actions_of",
]


@cache
def actions_of(*scopes: Scope) -> tuple[Action, ...]:
    return tuple(action for action in ACTIONS if action.scope in scopes)


@cache
def actions_named(action_id: str, *scopes: Scope) -> tuple[Action, ...]:
    """Return the actions of this id. Textual asks for each key after each change of the focus."""
    return tuple(action for action in actions_of(*scopes) if action.id == action_id)
