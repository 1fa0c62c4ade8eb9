"""Process keys and pastes one at a time: each waits until the screen is done with the one before.

Textual passes each key on at once: one typed right after a key that opens a screen or a dialog would go to
the screen below, or into a screen that has no widgets yet. Keys also wait for a dialog that opens after work
in the background; if it does not open in time, they are dropped: elsewhere, an answer may be a dangerous key.
And they wait while the screen's widgets change, such as from one question of a form to the next.

A dialog that nobody waits for, such as when a download turns out to meet existing files, takes no keys until
it can have been seen: they were meant for the screen below.

Without this queue, with textual 8.2 alone, 8 of the 12 tests in ``tests/app/test_typed_ahead.py`` fail: keys
typed ahead are lost, or act on the screen below.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import Worker

from tui.widgets.opening import is_fully_mounted

LONGEST_WAIT_S = 2.0
"""A screen that takes longer than this does not hold up the keys."""
SEEN_AFTER_S = 0.5
"""A dialog that opens by itself takes no keys for this long, as permission prompts of browsers do."""


class TypedKeys:
    """The keys and pastes not taken yet; ``take`` has the app handle one."""

    def __init__(self, app: App[Any], take: Callable[[events.Key | events.Paste], Awaitable[object]]) -> None:
        self._app = app
        self._take = take
        self._keys = deque[events.Key | events.Paste]()
        self._waiting: asyncio.Task[None] | None = None
        """Waits until the next key can be taken."""
        self._opening: Worker[None] | None = None
        self._unasked: Screen[Any] | None = None
        self._unasked_at_s = 0.0

    def note_opening(self, screen: Screen[Any]) -> None:
        """Note a screen that opens after work in the background; call this before it opens."""
        if self._opening is None:
            self._unasked, self._unasked_at_s = screen, monotonic()

    def wait_for(self, opening: Worker[None]) -> None:
        """Take no key until the worker has opened a screen above the current one."""
        self._opening = opening
        if self._waiting is None:
            self._wait()

    async def add(self, key: events.Key | events.Paste) -> None:
        self._keys.append(key)
        if self._waiting is None:
            if is_fully_mounted(self._app.screen):
                await self._take_next()
            else:
                self._wait()

    async def _take_next(self) -> None:
        self._waiting = None
        if not (self._keys and self._app.screen_stack):  # without screens, the app is ending
            return
        key, focused = self._keys.popleft(), self._app.focused
        try:
            if self._app.screen is not self._unasked or monotonic() - self._unasked_at_s >= SEEN_AFTER_S:
                await self._take(key)
        finally:
            self._wait(focused.ancestors_with_self if focused is not None else ())

    def _wait(self, way: Iterable[MessagePump] = ()) -> None:
        """Hold back the next key until the widgets in ``way`` have handled the last one."""
        if self._app.screen_stack:
            self._waiting = asyncio.create_task(self._until_ready(self._app.screen, way))

    async def _until_ready(self, screen: Screen[Any], way: Iterable[MessagePump]) -> None:
        await _handled((*way, screen, self._app))
        if self._opening is not None:
            opening = self._opening
            await _until(lambda: opening.is_finished or not self._is_on_top(screen), LONGEST_WAIT_S)
            self._opening = None
            if self._is_on_top(screen):
                self._keys.clear()
            else:
                await _handled((*self._app.screen_stack[-1:], self._app))
        await _until(lambda: all(map(is_fully_mounted, self._app.screen_stack[-1:])), LONGEST_WAIT_S)
        self._app.call_later(self._take_next)

    async def can_act_on(self, target: DOMNode) -> bool:
        """Return True if the screen of an action's target is on top, and settles soon."""

        def is_on_top() -> bool:
            return any(screen in target.ancestors_with_self for screen in self._app.screen_stack[-1:])

        if is_on_top():
            await _until(lambda: is_fully_mounted(self._app.screen), 0.5)
        return is_on_top() and is_fully_mounted(self._app.screen)

    def _is_on_top(self, screen: Screen[Any]) -> bool:
        return self._app.screen_stack[-1:] == [screen]


async def _handled(pumps: Iterable[MessagePump]) -> None:
    """Return once each has handled its messages so far; one that is being removed may never do."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_WAIT_S):
            for pump in pumps:
                is_done = asyncio.Event()
                if pump.call_later(is_done.set):
                    await is_done.wait()


async def _until(condition: Callable[[], bool], most_s: float) -> None:
    """Return once the condition holds, or after that many seconds."""
    begun_s = monotonic()
    while not condition() and monotonic() - begun_s <= most_s:  # noqa: ASYNC110
        await asyncio.sleep(0.02)  # no message says when all widgets of a screen are mounted
