"""Home's feed of a fake server, and its snapshots as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from api_client.clock import Clock
from support.fake_baseten import FakeBaseten
from support.remotes import remote_of
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.feeds.fleet import FleetFeed
from tui.readers.session import Session

WaitFor = Callable[[Callable[[FleetSnapshot], bool]], Awaitable[FleetSnapshot]]


@asynccontextmanager
async def followed(
    baseten: FakeBaseten, clock: Clock | None = None
) -> AsyncIterator[tuple[FleetFeed, WaitFor]]:
    """A feed that lists its jobs all the time, and a function that waits for a snapshot."""
    news, published = asyncio.Event(), list[FleetSnapshot]()

    def note(snapshot: FleetSnapshot) -> None:
        published.append(snapshot)
        news.set()

    async def wait_for(is_wanted: Callable[[FleetSnapshot], bool]) -> FleetSnapshot:
        async with asyncio.timeout(60):
            while not (published and is_wanted(published[-1])):
                news.clear()
                await news.wait()
        return published[-1]

    session = Session(remote_of(baseten), clock=clock)
    feed = FleetFeed(session, note, list_interval_s=0.01)
    task = asyncio.create_task(feed.run())
    try:
        yield feed, wait_for
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await session.client.aclose()
