"""Fold often, publish seldom: many changes become one message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from api_client.clock import Clock

PUBLISH_INTERVAL_S = 0.25
"""The least time between two snapshots, unless told otherwise; faster than that nobody reads."""


class Publisher:
    """Calls ``publish`` soon after ``touch``, and then not again for ``interval_s`` seconds."""

    def __init__(
        self, publish: Callable[[], None], clock: Clock, *, interval_s: float = PUBLISH_INTERVAL_S
    ) -> None:
        self.interval_s = interval_s
        self._publish = publish
        self._clock = clock
        self._touched = asyncio.Event()

    def touch(self) -> None:
        """Something changed."""
        self._touched.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self._touched.wait()
            self._touched.clear()
            self._publish()
            await self._clock.sleep(self.interval_s)
