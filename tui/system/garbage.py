"""Garbage collection that does not interrupt typing.

With many objects in memory, such as a recording of 64 nodes, searching all of them for garbage takes longer
than a key may: 100 to 300 ms. Python would do so whenever many objects were made, which is while the user
works. Here a collection searches only what was made since the last one, and freezes what it leaves. Garbage
among frozen objects waits until the user is away.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping

AWAY_S = 60.0
"""Search the frozen objects, too, after so many seconds without a key."""
DUE = 3
"""Collections of the middle generation (7,000 new objects each) after which a collection is due: 10 ms."""
TOO_MANY = 6
"""The same at which the objects are frozen unsearched: they were made in one turn of the event loop."""
MANY, URGENT = 200, 1000
"""The same since the last search of all objects that make the next one worthwhile, and urgent."""
NEVER = 1_000_000


def collect_by_hand() -> None:
    """Leave the oldest generation to ``GarbageCollector``, and freeze what exists now."""
    gc.freeze()
    gc.set_threshold(700, 10, NEVER)


class GarbageCollector:
    """Collects at the right times; does nothing unless ``collect_by_hand`` was called."""

    def __init__(self, unused_s: Callable[[], float]) -> None:
        self._unused_s = unused_s
        """Returns the seconds since the last key."""
        self._new = self._since_all = 0
        """Collections of the middle generation since the last collection here, and since the last of all."""

    def start(self) -> None:
        """Collect in the running event loop from now on."""
        if gc.get_threshold()[2] == NEVER:
            self._loop = asyncio.get_running_loop()
            gc.callbacks.append(self._count)

    def stop(self) -> None:
        """Stop collecting."""
        if self._count in gc.callbacks:
            gc.callbacks.remove(self._count)

    def _count(self, phase: str, info: Mapping[str, int]) -> None:
        """Count a collection that Python made, in whatever thread."""
        if phase == "start" or info["generation"] != 1:
            return
        self._new += 1
        self._since_all += 1
        if self._new == DUE and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._collect)
        elif self._new % TOO_MANY == 0:
            gc.freeze()

    def _collect(self) -> None:
        self._new = 0
        if self._since_all >= (MANY if self._unused_s() >= AWAY_S else URGENT):
            self._since_all = 0
            gc.unfreeze()
        gc.collect()
        gc.freeze()
