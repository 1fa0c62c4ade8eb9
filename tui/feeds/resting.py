"""The pause between two readings, which whoever looks may cut short."""

from __future__ import annotations

import asyncio
from typing import Any

from api_client.clock import Clock


async def rest(clock: Clock, asked: asyncio.Event, pause_s: float | None) -> None:
    """Return when ``asked`` is set, at the latest after ``pause_s`` seconds by the clock; None: no sooner."""
    waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(asked.wait())]
    if pause_s is not None:
        waiting.append(asyncio.ensure_future(clock.sleep(pause_s)))
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
