"""Support for screens and widgets while they open or close, when some of their children do not exist."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget


class MountsWithChildren(MessagePump):
    """Mixin for screens and widgets whose ``on_mount`` queries children.

    If a widget is removed while it opens, Textual does not mount its children, but still sends ``Mount`` to
    the widget. This mixin drops that event.
    """

    # A MessagePump, not a Widget: Textual takes CSS only from the first base that is a widget.
    _pruning: bool

    async def on_event(self, event: events.Event) -> None:
        if not (self._pruning and isinstance(event, events.Mount)):
            await super().on_event(event)


def is_fully_mounted(screen: Screen[Any]) -> bool:
    """True if neither the screen nor any of its widgets is being mounted or removed.

    A widget that is being mounted or removed may be in the DOM without its children.
    """
    return all(
        widget.is_mounted and widget.is_running and not widget._pruning
        for widget in (screen, *screen.walk_children(Widget))
    )
