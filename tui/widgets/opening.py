"""Screens and widgets that are opened or closed just now, when not all of their parts exist."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget


class OpenedWhole(MessagePump):
    """Mixin for screens and widgets whose ``on_mount`` finds its children.

    Textual mounts no children in what is removed while it opens, but still sends it ``Mount``.
    """

    # Not a widget: style sheets follow only the first base that is one, here what this is mixed into.
    _pruning: bool

    async def on_event(self, event: events.Event) -> None:
        if not (self._pruning and isinstance(event, events.Mount)):
            await super().on_event(event)


def is_settled(screen: Screen[Any]) -> bool:
    """True if neither the screen nor any widget of it is being mounted or removed.

    A new widget is in the DOM before its children are, and a removed one after its children are gone.
    """
    return all(
        widget.is_mounted and widget.is_running and not widget._pruning
        for widget in (screen, *screen.walk_children(Widget))
    )
