"""Garbage collection that does not interrupt typing.

With a recording of 64 nodes in memory, a search of all its 1.2 million objects for garbage takes 160 ms:
longer than a key may. Python makes one whenever many objects were made, which is while the user works: 66
times while somebody went to 60 moments of that recording. Here all are searched only while nobody types.
"""

from __future__ import annotations

import gc

COLLECT_EVERY_S = 300.0
IDLE_S = 5.0
NEVER = 1_000_000


def collect_only_when_idle() -> None:
    """Leave the oldest generation to ``collect_if_idle``, and never search what exists now."""
    gc.freeze()
    gc.set_threshold(700, 10, NEVER)


def collect_if_idle(unused_s: float) -> None:
    """Search all objects if the last key was ``unused_s`` seconds ago or more."""
    if unused_s >= IDLE_S:
        gc.collect()
