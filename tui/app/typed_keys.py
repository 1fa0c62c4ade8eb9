"""Process keys and pastes one at a time: each waits until the screen has handled the previous one.

Textual dispatches each key at once: a key typed right after another key that opens a screen would go to the
screen below, or to a screen that has no widgets yet. Keys also wait for a dialog that opens after background
work; if it does not open in time, the keys are dropped, because an answer may be a dangerous key on the
screen below. And keys wait while the screen's widgets change, as between two questions of a form.

A dialog that opens by itself, as when a download finds existing files, ignores keys until the user can have
seen it: the keys were meant for the screen below.

Without this queue, with textual 8.2 alone, 8 of the 12 tests in ``tests/app/test_typed_ahead.py`` fail: keys
typed ahead are lost, or act on the screen below.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Any

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import Worker

from tui.widgets.opening import is_fully_mounted

MAX_WAIT_S = 2.0
"""Keys wait at most this long for a screen, not counting the time for which the whole program was stalled."""
POLL_S = 0.02
"""Polling interval. Waits end after a number of polls, so that a stalled machine does not end them."""
SEEN_AFTER_S = 0.5
"""A dialog that opens by itself ignores keys for this long, as permission prompts of browsers do."""


class TypedKeys:
    """The queue of keys and pastes; ``handle`` passes one key or paste to the app."""

    def __init__(
        self, app: App[Any], handle: Callable[[events.Key | events.Paste], Awaitable[object]]
    ) -> None:
        self._app = app
        self._handle = handle
        self._keys = deque[events.Key | events.Paste]()
        self._wait_task: asyncio.Task[None] | None = None
        """Task that waits until the next key may be handled; None if the queue is idle."""
        self._opening_worker: Worker[None] | None = None
        """Worker that is about to open a screen in response to the last key; None if there is none."""
        self._unrequested_dialog: Screen[Any] | None = None
        """The last dialog that opened by itself."""
        self._unrequested_since_s = 0.0

    def register_dialog(self, screen: Screen[Any]) -> None:
        """Register a dialog that is about to open.

        Unless ``wait_for`` got the worker that opens it, the dialog opens by itself, and first ignores keys.
        """
        if self._opening_worker is None:
            self._unrequested_dialog, self._unrequested_since_s = screen, monotonic()

    def wait_for(self, worker: Worker[None]) -> None:
        """Handle no key until the worker has opened a screen above the current one, or has ended."""
        self._opening_worker = worker
        if self._wait_task is None:
            self._start_waiting()

    async def add(self, key: events.Key | events.Paste) -> None:
        self._keys.append(key)
        if self._wait_task is None:
            if is_fully_mounted(self._app.screen):
                await self._handle_next()
            else:
                self._start_waiting()

    async def _handle_next(self) -> None:
        self._wait_task = None
        if not (self._keys and self._app.screen_stack):  # without screens, the app is exiting
            return
        key, focused = self._keys.popleft(), self._app.focused
        try:
            if (
                self._app.screen is not self._unrequested_dialog
                or monotonic() - self._unrequested_since_s >= SEEN_AFTER_S
            ):
                await self._handle(key)
        finally:
            self._start_waiting(focused.ancestors_with_self if focused is not None else ())

    def _start_waiting(self, bubble_path: Iterable[MessagePump] = ()) -> None:
        """Delay the next key until the widgets that the last key bubbled to have handled it."""
        if self._app.screen_stack:
            self._wait_task = asyncio.create_task(self._wait_until_ready(self._app.screen, bubble_path))

    async def _wait_until_ready(self, screen: Screen[Any], bubble_path: Iterable[MessagePump]) -> None:
        await _wait_for_queues((*bubble_path, screen, self._app))
        if self._opening_worker is not None:
            worker = self._opening_worker
            await _wait_until(lambda: worker.is_finished or not self._is_on_top(screen), MAX_WAIT_S)
            self._opening_worker = None
            if self._is_on_top(screen):
                self._keys.clear()
            else:
                await _wait_for_queues((*self._app.screen_stack[-1:], self._app))
        await _wait_until(self._is_mounted, MAX_WAIT_S)
        self._app.call_later(self._handle_next)

    async def can_act_on(self, target: DOMNode) -> bool:
        """Return True if the screen of an action's target is on top and soon has all its widgets mounted."""

        def is_on_top() -> bool:
            return any(screen in target.ancestors_with_self for screen in self._app.screen_stack[-1:])

        if is_on_top():
            await _wait_until(self._is_mounted, 0.5)
        return is_on_top() and self._is_mounted()

    def _is_on_top(self, screen: Screen[Any]) -> bool:
        return self._app.screen_stack[-1:] == [screen]

    def _is_mounted(self) -> bool:
        """Return True if the screen on top has all its widgets, or if the app is exiting (no screen)."""
        return all(map(is_fully_mounted, self._app.screen_stack[-1:]))


async def _wait_for_queues(pumps: Iterable[MessagePump]) -> None:
    """Wait until each pump has handled its queued messages, with a limit: a removed widget never does."""

    async def wait() -> None:
        for pump in pumps:
            queue_is_done = asyncio.Event()
            if pump.call_later(queue_is_done.set):
                await queue_is_done.wait()

    wait_task = asyncio.create_task(wait())
    try:
        for _ in range(round(MAX_WAIT_S / POLL_S)):
            if wait_task in (await asyncio.wait((wait_task,), timeout=POLL_S))[0]:
                break
    finally:
        wait_task.cancel()


async def _wait_until(condition: Callable[[], bool], timeout_s: float) -> None:
    """Wait until the condition holds, but at most ``timeout_s`` seconds."""
    for _ in range(round(timeout_s / POLL_S)):
        if condition():
            break
        await asyncio.sleep(POLL_S)  # no message says when all widgets of a screen are mounted
