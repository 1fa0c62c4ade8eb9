"""Garbage collection that does not interrupt typing.

With ten thousand jobs or a million log lines in memory, collecting the oldest generation takes longer than
a key may: 150 ms. Python would do so whenever many objects were made, which is while the user works.
"""

from __future__ import annotations

import gc

QUIET_S = 1.0
"""Collect after so many seconds without a key."""
DUE, OVERDUE = 10, 60
"""Collections of the middle generation (7,000 new objects each) after which one of the oldest is worthwhile,
and after which it cannot wait for a quiet moment."""
NEVER = 1_000_000


def collect_by_hand() -> None:
    """Leave the oldest generation to ``collect_if_due``; what exists now is never searched for garbage."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], NEVER)


def collect_if_due(*, is_quiet: bool) -> None:
    if gc.get_count()[2] >= (DUE if is_quiet else OVERDUE):
        gc.collect()
