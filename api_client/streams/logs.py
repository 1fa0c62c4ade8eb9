"""The log streams: follow a job's log, or read a stretch of it. Every line exactly once.

What cannot be had (a millisecond that holds more lines than the API can answer, a window that the server
cannot answer) becomes a LogGap, never silence. ``read_logs(…, end_ms=S)`` and ``follow_logs(…, start_ms=S)``
meet exactly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from api_client.clock import Clock, SystemClock
from api_client.streams.follow import Follower
from api_client.streams.follow_options import FollowOptions
from api_client.streams.pages import MAX_PAGE_LINES, PageSource
from api_client.streams.reader import RangeReader
from api_client.streams.records import FetchJob, FetchPage, LogBatch, LogEnd


async def follow_logs(
    fetch: FetchPage,
    fetch_job: FetchJob,
    *,
    clock: Clock,
    start_ms: int,
    options: FollowOptions | None = None,
) -> AsyncIterator[LogBatch | LogEnd]:
    """All lines stamped ``start_ms`` (epoch milliseconds) or later, until the job has ended.

    Batches of the history (``caught_up`` false), an empty batch at the live edge, then batches as lines
    arrive, and one LogEnd with the finished job. Lines that are not ``late`` come in time order.
    Outlives errors that may pass, for as long as it takes; raises the other RequestErrors (Unauthorized,
    NotFound when the job was deleted, …).
    """
    follower = Follower(fetch, fetch_job, clock=clock, start_ms=start_ms, options=options or FollowOptions())
    async with aclosing(follower.stream()) as batches:
        async for batch in batches:
            yield batch


async def read_logs(
    fetch: FetchPage,
    *,
    start_ms: int,
    end_ms: int,
    newest_first: bool = False,
    clock: Clock | None = None,
    page_limit: int = MAX_PAGE_LINES,
) -> AsyncIterator[LogBatch]:
    """The lines ``start_ms <= t < end_ms`` (epoch milliseconds), a stretch of any length.

    Batches go forwards in time, or backwards if ``newest_first``; each batch is ascending. Outlives errors
    that may pass; raises the other RequestErrors.
    """
    pages = PageSource(fetch, clock=clock or SystemClock(), limit=page_limit)
    reader = RangeReader(pages, start_ms, end_ms, newest_first=newest_first)
    while not reader.is_done:
        entries = await reader.next_batch()
        if entries:
            yield LogBatch(tuple(entries), caught_up=False)
