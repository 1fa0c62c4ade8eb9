"""On the tab Metrics, beside those of the charts."""

from __future__ import annotations

from tui.actions.action import Action

ACTIONS: tuple[Action, ...] = ()
