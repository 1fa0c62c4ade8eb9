"""All jobs as Home watches them, for commands that print their progress, health and cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from api_client.client import TrainingClient
from tui.analysis.fleet.snapshot import FleetSnapshot, JobRow
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


async def checked_jobs(client: TrainingClient, ids: Sequence[str]) -> tuple[FleetSnapshot, list[JobRow]]:
    """Return these jobs in this order once all of them have been read and checked, after at most a minute."""
    deadline_s = client.clock.monotonic() + 60.0
    session = Session(client.remote, clock=client.clock)
    with ProgressLine() as line:
        async with watched_fleet(client, session, ids) as next_snapshot:
            while True:
                snapshot = await next_snapshot()
                by_id = {row.id: row for row in snapshot.jobs}
                rows = [by_id[job_id] for job_id in ids if job_id in by_id]
                if snapshot.is_read or client.clock.monotonic() > deadline_s:
                    return snapshot, rows
                running = [row for row in rows if row.running]
                done = sum(row.preview.log_read for row in running)
                line.show("checking", note=f"{done} of {counted(len(running), 'running job')}")
