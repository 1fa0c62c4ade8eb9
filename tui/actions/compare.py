"""Where runs are compared."""

from __future__ import annotations

from tui.actions.action import Action

ACTIONS: tuple[Action, ...] = ()
