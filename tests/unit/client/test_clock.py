"""The machine's clock."""

from __future__ import annotations

import asyncio
import weakref
from contextvars import ContextVar, copy_context

from api_client.clock import SystemClock


class Thing:
    pass


async def test_canceled_sleep_keeps_nothing_of_its_context() -> None:
    def begin() -> tuple[weakref.ref[Thing], asyncio.Task[None]]:
        thing, context = Thing(), copy_context()
        context.run(ContextVar[Thing]("shown").set, thing)
        return weakref.ref(thing), asyncio.create_task(SystemClock().sleep(3600), context=context)

    earlier = asyncio.create_task(asyncio.sleep(60))  # asyncio drops canceled timers that are the next
    alive, sleeping = begin()
    await asyncio.sleep(0.01)
    sleeping.cancel()
    await asyncio.wait([sleeping])
    del sleeping
    await asyncio.sleep(0)
    assert alive() is None
    earlier.cancel()
