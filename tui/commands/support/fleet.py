"""All jobs as Home watches them, for commands that print their progress, health and cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress

from api_client.client import TrainingClient
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.commands.support.output import CommandFailed, ExitCode, Output
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.remotes import run_settings
from tui.readers.session import Session
from tui.text.units import counted


@asynccontextmanager
async def watched_fleet(
    client: TrainingClient, session: Session, only: Collection[str] | None = None
) -> AsyncIterator[Callable[[], Awaitable[FleetSnapshot]]]:
    """Watch all jobs as Home does; yields a function that waits for the next snapshot.

    With ``only``, logs and metrics are read only of the jobs with these ids.
    """
    from tui.feeds.fleet import FleetFeed

    await client.projects.list()  # reports and raises what the feed would repeat
    snapshots: asyncio.Queue[FleetSnapshot] = asyncio.Queue()

    async def newest() -> FleetSnapshot:
        snapshot = await snapshots.get()
        while not snapshots.empty():
            snapshot = snapshots.get_nowait()
        return snapshot

    async with session.client, asyncio.TaskGroup() as tasks:
        feed = FleetFeed(session, snapshots.put_nowait, run_settings(), only=only)
        task = tasks.create_task(feed.run())
        yield newest
        task.cancel()


async def read_fleet(
    client: TrainingClient, output: Output, ids: Collection[str] | None = None, timeout_s: float = 60.0
) -> FleetSnapshot:
    """Return all jobs once those with these ids (default: all) have been read, or what is known in time."""
    snapshot: FleetSnapshot | None = None
    session = Session(client.remote, clock=client.clock)
    with ProgressLine() as line:
        async with watched_fleet(client, session, ids) as next_snapshot:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    while snapshot is None or not snapshot.is_read:
                        snapshot = await next_snapshot()
                        done = [row.preview.log_read for row in snapshot.jobs if row.running]
                        line.show("checking", note=f"{sum(done)} of {counted(len(done), 'running job')}")
    if snapshot is None:
        raise CommandFailed(f"no answer within {timeout_s:g} s", ExitCode.UNREACHABLE)
    reasons = {route.service: route.reason for route in session.connection.failing_routes}
    for reason in reasons.values():
        output.remark(f"not all could be read: {reason}")
    return snapshot
