"""On the cache of a project."""

from __future__ import annotations

from tui.actions.action import Action

ACTIONS: tuple[Action, ...] = ()
