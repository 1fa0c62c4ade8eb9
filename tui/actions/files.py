"""On the files of a checkpoint."""

from __future__ import annotations

from tui.actions.action import Action

ACTIONS: tuple[Action, ...] = ()
