"""Return the first snapshot of the job screen's feed that meets a condition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from api_client.models import TrainingJob
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.run import RunFeed
from tui.readers.session import Session

PATIENCE_S = 120.0


async def first_snapshot(
    session: Session, job: TrainingJob, holds: Callable[[RunSnapshot], bool], *, span: timedelta
) -> RunSnapshot:
    """The first snapshot of which that holds; the charts show ``span``."""
    seen: asyncio.Future[RunSnapshot] = asyncio.get_running_loop().create_future()

    def take(run: RunSnapshot) -> None:
        if not seen.done() and holds(run):
            seen.set_result(run)

    feed = RunFeed(session, job, publish=take, on_log=lambda part: None, on_gone=lambda: None, span=span)
    task = asyncio.create_task(feed.run())
    try:
        return await asyncio.wait_for(seen, PATIENCE_S)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
