from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from tui.system.garbage import AWAY_S, GarbageCollector, collect_by_hand


class Thing:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("unused_s", [0.0, AWAY_S])
async def test_new_garbage_goes_soon_and_old_garbage_while_the_user_is_away(unused_s: float) -> None:
    threshold, old = gc.get_threshold(), Thing()
    gc.collect()
    collect_by_hand()
    new = Thing()
    was_old, was_new = weakref.ref(old), weakref.ref(new)
    collector = GarbageCollector(lambda: unused_s)
    collector.start()
    try:
        made: list[list[int]] = [[] for _ in range(9_000)]  # now Python itself would search for them no more
        del old, new
        for _ in range(500):
            made = [[] for _ in range(7_000)]
            await asyncio.sleep(0)
        assert made
        assert (was_new(), was_old() is None) == (None, unused_s >= AWAY_S)
    finally:
        collector.stop()
        gc.set_threshold(*threshold)
