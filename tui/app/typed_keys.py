"""Keys one after the other: each is taken once what the key before it began on the screen is done.

Textual hands each key on at once: one typed right after a key that opens a screen or a dialog would go to the
screen below, or into a screen that has no widgets yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from textual import events
from textual.app import App
from textual.screen import Screen

LONGEST_WAIT_S = 2.0
"""A screen that takes longer than this does not hold up the keys."""


class TypedKeys:
    """The keys not taken yet; ``take`` has the app handle one."""

    def __init__(self, app: App[Any], take: Callable[[events.Key], Awaitable[object]]) -> None:
        self._app = app
        self._take = take
        self._keys = deque[events.Key]()
        self._settling: Screen[Any] | None = None
        """The screen that has yet to handle what the last key began."""
        self._taken_at_s = 0.0

    async def add(self, key: events.Key) -> None:
        self._keys.append(key)
        is_late = monotonic() - self._taken_at_s > LONGEST_WAIT_S
        if self._settling is None or not self._settling.is_running or is_late:
            await self._next()

    async def _next(self) -> None:
        self._settling = None
        if self._keys:
            self._taken_at_s = monotonic()
            await self._take(self._keys.popleft())
            if self._app.screen_stack:
                self._settling = self._app.screen
                if not self._settling.call_later(self._app.call_later, self._next):
                    self._app.call_later(self._next)
