"""Garbage collection that does not interrupt typing.

With many objects in memory, such as a recording of 64 nodes, searching all of them for garbage takes longer
than a key may: 100 ms. Python would do so whenever many objects were made, which is while the user works.
Here a collection searches only what was made since the last one, and freezes what it leaves. Garbage among
frozen objects waits until the user is away.
"""

from __future__ import annotations

import gc

CHECK_INTERVAL_S = 0.2
AWAY_S = 60.0
"""Search the frozen objects, too, after so many seconds without a key."""
DUE = 4
"""Collections of the middle generation (7,000 new objects each) after which a collection is due: 20 ms."""
MANY, TOO_MANY = 30, 1000
"""The same since the last search of all objects that make the next one worthwhile, and urgent."""
NEVER = 1_000_000


def collect_by_hand() -> None:
    """Leave the oldest generation to ``GarbageCollector``, and freeze what exists now."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], NEVER)


class GarbageCollector:
    """Collects at the right times; does nothing unless ``collect_by_hand`` was called."""

    def __init__(self) -> None:
        self._since_all = 0
        """Collections of the middle generation since the last search of all."""

    def collect_if_due(self, *, unused_s: float) -> None:
        """Collect if enough objects were made, given the seconds since the last key."""
        new = gc.get_count()[2]
        if new < DUE or gc.get_threshold()[2] != NEVER:
            return
        self._since_all += new
        if self._since_all >= (MANY if unused_s >= AWAY_S else TOO_MANY):
            self._since_all = 0
            gc.unfreeze()
        gc.collect()
        gc.freeze()
