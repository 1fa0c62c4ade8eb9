"""Keys and pastes one after the other: each is taken once what the key before it began on the screen is done.

Textual hands each key on at once: one typed right after a key that opens a screen or a dialog would go to the
screen below, or into a screen that has no widgets yet. Keys also wait for a dialog that opens after work in
the background; if it does not open in time, they are dropped: elsewhere, an answer may be a dangerous key.
And they wait while the screen's widgets change, such as from one question of a form to the next.

A dialog that nobody waits for, such as when a download turns out to meet existing files, takes no keys until
it can have been seen: they were meant for the screen below.

Without this queue, with textual 8.2 alone, 8 of the 12 tests in ``tests/app/test_typed_ahead.py`` fail: keys
typed ahead are lost, or act on the screen below.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from tui.widgets.opening import is_settled

LONGEST_WAIT_S = 2.0
"""A screen that takes longer than this does not hold up the keys."""
CHECK_EVERY_S = 0.02
SEEN_AFTER_S = 0.5
"""A dialog that opens by itself takes no keys for so long, as questions of a web browser do."""


class TypedKeys:
    """The keys and pastes not taken yet; ``take`` has the app handle one."""

    def __init__(self, app: App[Any], take: Callable[[events.Key | events.Paste], Awaitable[object]]) -> None:
        self._app = app
        self._take = take
        self._keys = deque[events.Key | events.Paste]()
        self._settling: Screen[Any] | None = None
        """The screen that has yet to handle what the last key began, or to become ready for the next one."""
        self._opening: Worker[None] | None = None
        self._begun_at_s = 0.0
        """When the last key was taken, or the first one began to wait."""
        self._check: Timer | None = None
        self._round = 0
        """Number of keys and dialogs waited for so far."""
        self._unasked: Screen[Any] | None = None
        self._unasked_at_s = 0.0

    def note_opening(self, screen: Screen[Any]) -> None:
        """Note a screen that opens after work in the background; call this before it opens."""
        if self._opening is None:
            self._unasked, self._unasked_at_s = screen, monotonic()

    def wait_for(self, opening: Worker[None]) -> None:
        """Take no key until the worker has opened a screen above the current one."""
        self._opening, self._begun_at_s = opening, monotonic()
        if self._settling is None:
            self._settle()

    async def add(self, key: events.Key | events.Paste) -> None:
        self._keys.append(key)
        if self._settling is None:
            self._begun_at_s = monotonic()
            await self._next()
        elif not self._settling.is_running or self._is_late:
            await self._next()

    @property
    def _is_late(self) -> bool:
        return monotonic() - self._begun_at_s > LONGEST_WAIT_S

    async def _next(self) -> None:
        if self._check is not None:
            self._check.stop()
            self._check = None
        if self._opening is not None:
            self._check_opening(self._opening)
        elif not (self._keys and self._app.screen_stack):  # without screens, the app is ending
            self._settling = None
        elif not self._is_late and not is_settled(self._app.screen):
            self._settling = self._app.screen
            self._check_again()
        else:
            await self._take_first()

    async def _take_first(self) -> None:
        self._settling, self._begun_at_s = None, monotonic()
        key, focused = self._keys.popleft(), self._app.focused
        try:
            if self._app.screen is not self._unasked or monotonic() - self._unasked_at_s >= SEEN_AFTER_S:
                await self._take(key)
        finally:
            self._settle(focused)

    def _check_again(self) -> None:
        self._check = self._app.set_timer(CHECK_EVERY_S, self._next)

    def _settle(self, focused: Widget | None = None) -> None:
        """Wait until the widget that the key went to, and all above it, have handled what it began."""
        if self._app.screen_stack:
            self._settling = self._app.screen
            if self._check is not None:
                self._check.stop()
            # A widget that is being removed may never call back.
            self._check = self._app.set_timer(LONGEST_WAIT_S, self._next)
            way = focused.ancestors_with_self if focused is not None else ()
            self._round += 1
            self._go_on(self._round, deque([*way, self._settling, self._app]))

    def _go_on(self, number: int, way: deque[MessagePump]) -> None:
        """Follow the way of messages, from a widget to those above it, as its own messages do."""
        if number != self._round:
            return
        while way:
            if way.popleft().call_later(self._go_on, number, way):
                return
        self._app.call_later(self._next)

    def _check_opening(self, opening: Worker[None]) -> None:
        if self._settling not in self._app.screen_stack[-1:]:
            self._opening = None
            self._settle()
        elif opening.is_finished or self._is_late:
            self._opening = self._settling = None
            self._keys.clear()
        else:
            self._check_again()
