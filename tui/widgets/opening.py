"""Screens and widgets that are still opening or already closing, when some of their children are missing."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget


class MountsWithChildren(MessagePump):
    """Mixin for screens and widgets whose ``on_mount`` queries children.

    Textual does not mount the children of a widget that is removed while it opens, but still sends it
    ``Mount``, which this mixin drops.
    """

    # A MessagePump, not a Widget: Textual takes CSS only from the first base that is a widget.
    _pruning: bool

    async def on_event(self, event: events.Event) -> None:
        if not (self._pruning and isinstance(event, events.Mount)):
            await super().on_event(event)


def is_fully_mounted(screen: Screen[Any]) -> bool:
    """True if neither the screen nor any widget of it is being mounted or removed.

    A new widget is in the DOM before its children are, and a removed one after its children are gone.
    """
    return all(
        widget.is_mounted and widget.is_running and not widget._pruning
        for widget in (screen, *screen.walk_children(Widget))
    )
