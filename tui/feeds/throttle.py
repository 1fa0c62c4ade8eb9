"""For all feeds: a ``Pause`` between polls, a ``Throttle`` of publishing, and the base ``SnapshotFeed``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from api_client.clock import Clock

if TYPE_CHECKING:
    from tui.readers.session import Session

Snapshot = TypeVar("Snapshot", bound=Any)


class Pause:
    """A pause between two polls. ``end`` ends the current pause, or if there is none, skips the next one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_over = asyncio.Event()

    async def __call__(self, pause_s: float | None) -> None:
        """Wait ``pause_s`` seconds by the clock; None waits until ``end``."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._is_over.wait())]
        if pause_s is not None:
            waits.append(asyncio.ensure_future(self._clock.sleep(pause_s)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        self._is_over.clear()

    def end(self) -> None:
        self._is_over.set()


class Throttle:
    """Calls ``publish`` soon after ``request``, at most once every ``interval_s`` seconds."""

    def __init__(self, publish: Callable[[], None], clock: Clock, *, interval_s: float) -> None:
        self.interval_s = interval_s
        self._publish = publish
        self._clock = clock
        self._is_requested = asyncio.Event()

    def request(self) -> None:
        self._is_requested.set()

    async def run(self) -> None:
        while True:
            await self._is_requested.wait()
            self._is_requested.clear()
            self._publish()
            await self._clock.sleep(self.interval_s)


class SnapshotFeed(Generic[Snapshot]):
    """Base class of feeds that hold a snapshot, which is a dataclass, and publish it after each change."""

    def __init__(self, session: Session, snapshot: Snapshot, publish: Callable[[Snapshot], object]) -> None:
        self.snapshot: Snapshot = snapshot
        self._session = session
        self._publish: Callable[[Snapshot], object] = publish
        self._pause = Pause(session.clock)

    def refresh(self) -> None:
        self._pause.end()

    def _change(self, **changes: Any) -> None:
        self.snapshot = replace(self.snapshot, **changes)
        self._publish(self.snapshot)
