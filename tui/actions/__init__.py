"""All actions of the dashboard, with one module for each scope.

Footer, help screen, command palette and docs/keys.md read this list, so they cannot disagree. The
action ``id`` is handled by the method ``action_<id>`` of the scope's owner, a screen or the app.
"""

from __future__ import annotations

from tui.actions import (
    cache,
    capacity,
    charts,
    checkpoints,
    compare,
    deploy,
    downloads,
    everywhere,
    files,
    home,
    job,
    logs,
    metrics,
    submit,
)
from tui.actions.action import SCOPE_TITLES, Action, Scope

__all__ = ["ACTIONS", "SCOPE_TITLES", "Action", "Scope", "actions_of"]

ACTIONS: tuple[Action, ...] = (
    *home.ACTIONS,
    *job.ACTIONS,
    *logs.ACTIONS,
    *charts.ACTIONS,
    *metrics.ACTIONS,
    *checkpoints.ACTIONS,
    *files.ACTIONS,
    *cache.ACTIONS,
    *downloads.ACTIONS,
    *compare.ACTIONS,
    *capacity.ACTIONS,
    *submit.ACTIONS,
    *deploy.ACTIONS,
    *everywhere.ACTIONS,
)
"""All actions, in the order that help and documentation show them."""


def actions_of(*scopes: Scope) -> tuple[Action, ...]:
    """Return the actions of these scopes, in order."""
    return tuple(action for action in ACTIONS if action.scope in scopes)
