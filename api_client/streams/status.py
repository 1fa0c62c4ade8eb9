"""A job's status, watched until it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

from api_client.clock import Clock
from api_client.models import TrainingJob
from api_client.streams.patience import patiently
from api_client.streams.records import FetchJob


async def watch_job(fetch_job: FetchJob, *, clock: Clock, interval_s: float) -> AsyncIterator[TrainingJob]:
    """The job at once, then again every ``interval_s`` seconds; the finished job is the last.

    Outlives errors that may pass. Raises Unauthorized, NotFound and other RequestErrors that will not.
    """
    while True:
        job = await patiently(fetch_job, clock=clock)
        yield job
        if job.is_finished:
            return
        await clock.sleep(interval_s)
