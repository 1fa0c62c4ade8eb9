"""Garbage collection that does not interrupt typing.

With many objects in memory, such as a recording of 64 nodes, searching all of them for garbage takes longer
than a key may: 100 ms. Python would do so whenever many objects were made, which is while the user works.
Here a collection searches only what was made since the last one, and freezes what it leaves. Garbage among
frozen objects waits until the user is away.
"""

from __future__ import annotations

import gc

QUIET_S, AWAY_S = 1.0, 60.0
"""Collect after so many seconds without a key; search the frozen objects, too, after so many."""
DUE, OVERDUE = 5, 15
"""Collections of the middle generation (7,000 new objects each) after which a collection is worthwhile, and
after which it cannot wait for a quiet moment."""
MANY, TOO_MANY = 200_000, 500_000
"""Frozen objects since the last search of all that make the next one worthwhile, and urgent."""
NEVER = 1_000_000


def collect_by_hand() -> None:
    """Leave the oldest generation to ``GarbageCollector``, and freeze what exists now."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], NEVER)


class GarbageCollector:
    """Collects at the right times; does nothing unless ``collect_by_hand`` was called."""

    def __init__(self) -> None:
        self._kept = gc.get_freeze_count()
        """Frozen objects after the last search of all."""

    def collect_if_due(self, *, unused_s: float) -> None:
        """Collect if enough objects were made, given the seconds since the last key."""
        is_due = gc.get_count()[2] >= (DUE if unused_s >= QUIET_S else OVERDUE)
        if not is_due or gc.get_threshold()[2] != NEVER:
            return
        more = gc.get_freeze_count() - self._kept
        search_all = more >= (MANY if unused_s >= AWAY_S else TOO_MANY)
        if search_all:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if search_all:
            self._kept = gc.get_freeze_count()
