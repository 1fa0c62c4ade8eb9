"""On the tab Checkpoints."""

from __future__ import annotations

from tui.actions.action import Action

ACTIONS: tuple[Action, ...] = ()
