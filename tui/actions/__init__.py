"""All actions of the dashboard, with one module for each scope.

Footer, help screen, command palette and docs/keys.md read this list, so they cannot disagree. The
action ``id`` is handled by the method ``action_<id>`` of the scope's owner, a screen or the app.
"""

from __future__ import annotations

from tui.actions import job_screen, other_screens
from tui.actions.action import SCOPE_TITLES, Action, Scope

__all__ = ["ACTIONS", "SCOPE_TITLES", "Action", "Scope", "actions_of"]

ACTIONS: tuple[Action, ...] = (
    *other_screens.HOME_ACTIONS,
    *job_screen.JOB_ACTIONS,
    *job_screen.LOG_ACTIONS,
    *job_screen.CHART_ACTIONS,
    *job_screen.METRICS_ACTIONS,
    *job_screen.CHECKPOINT_ACTIONS,
    *other_screens.FILE_ACTIONS,
    *other_screens.CACHE_ACTIONS,
    *other_screens.DOWNLOAD_ACTIONS,
    *other_screens.COMPARE_ACTIONS,
    *other_screens.CAPACITY_ACTIONS,
    *other_screens.SUBMIT_ACTIONS,
    *other_screens.DEPLOY_ACTIONS,
    *other_screens.GLOBAL_ACTIONS,
)
"""All actions, in the order that help and documentation show them."""


def actions_of(*scopes: Scope) -> tuple[Action, ...]:
    """Return the actions of these scopes, in order."""
    return tuple(action for action in ACTIONS if action.scope in scopes)
