"""Every action of the dashboard, once: a module a scope.

Footer, help screen, command palette and docs/keys.md all read this list, so that they
cannot disagree. ``id`` is also the name of the method that does it: ``action_<id>`` of the owner of
the scope, a screen or the app.
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
"""All actions, in the order in which people should meet them."""


def actions_of(*scopes: Scope) -> tuple[Action, ...]:
    """The actions of these scopes, in order."""
    return tuple(action for action in ACTIONS if action.scope in scopes)
