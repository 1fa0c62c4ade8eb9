"""The log streams: follow a job's log, or read a time range of it. Every line exactly once.

Lines that cannot be read (a millisecond with more lines than the API can return, a range that the server
cannot answer) are reported as a LogGap, never dropped silently. ``read_logs(…, end_ms=S)`` and
``follow_logs(…, start_ms=S)`` meet exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing

from api_client.clock import Clock, SystemClock
from api_client.models.logs import (
    MS_PER_S,
    NS_PER_MS,
    FetchJob,
    FetchPage,
    IsComplete,
    LogBatch,
    LogEnd,
    LogEntry,
    LogGap,
    LogLine,
    gap_with_lines,
    stamp_ns,
)
from api_client.streams.follow import Follower, FollowOptions
from api_client.streams.pages import MAX_PAGE_LINES, PageSource
from api_client.streams.parallel import ParallelReader


async def follow_logs(
    fetch: FetchPage,
    fetch_job: FetchJob,
    *,
    clock: Clock,
    start_ms: int,
    options: FollowOptions | None = None,
    is_complete: IsComplete = lambda: False,
) -> AsyncGenerator[LogBatch | LogEnd, None]:
    """Yield all lines from ``start_ms`` (epoch milliseconds) on, until the job has ended.

    Yields batches of the history (``caught_up`` false), an empty batch at the live edge, then batches as
    lines arrive, and one LogEnd with the finished job. Lines that are not ``late`` come in time order.
    Transient errors are retried indefinitely; raises the other RequestErrors (Unauthorized, NotFound if
    the job was deleted, …). If ``is_complete`` returns True, the stream does not wait for late lines at
    the end.
    """
    follower = Follower(
        fetch,
        fetch_job,
        clock=clock,
        start_ms=start_ms,
        options=options or FollowOptions(),
        is_complete=is_complete,
    )
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
    in_flight: int = 1,
) -> AsyncGenerator[LogBatch, None]:
    """Yield the lines ``start_ms <= t < end_ms`` (epoch milliseconds), a time range of any length.

    Batches go forward in time, or backward if ``newest_first``; each batch is ascending, and its
    ``read_part`` is the fraction of the time range (up to now) that has been read. ``in_flight`` parts of
    a long range are read concurrently. Transient errors are retried; raises the other RequestErrors.
    """
    clock = clock or SystemClock()
    pages = PageSource(fetch, clock=clock, limit=page_limit)
    reader = ParallelReader(pages, start_ms, end_ms, newest_first=newest_first, in_flight=in_flight)
    until_ms = min(end_ms, int(clock.now().timestamp() * MS_PER_S))
    async with aclosing(reader.batches()) as batches:
        async for entries in batches:
            reached_ms = stamp_ns(entries[0 if newest_first else -1]) // NS_PER_MS
            done_ms = until_ms - reached_ms if newest_first else reached_ms - start_ms
            part = min(max(done_ms / max(until_ms - start_ms, 1), 0.0), 1.0)
            yield LogBatch(tuple(entries), caught_up=False, read_part=part)


async def fill_gap(fetch: FetchPage, gap: LogGap, *, clock: Clock) -> tuple[LogEntry, ...]:
    """Read a gap again and return the lines not delivered before, in time order.

    Lines that are still not available are represented by a LogGap. Raises permanent RequestErrors.
    """
    start_ms, end_ms = gap.start_ns // NS_PER_MS, -(-gap.end_ns // NS_PER_MS)
    found: list[LogEntry] = []
    async for batch in read_logs(fetch, start_ms=start_ms, end_ms=end_ms, clock=clock):
        found += batch.entries
    known = Counter(gap.held)
    new: list[LogLine] = []
    for entry in found:
        if isinstance(entry, LogLine) and gap.start_ns <= entry.timestamp_ns < gap.end_ns:
            if known[entry]:
                known[entry] -= 1
            else:
                new.append(entry)
    held = [*gap.held, *new]
    left = [
        gap_with_lines(max(entry.start_ns, gap.start_ns), min(entry.end_ns, gap.end_ns), entry.reason, held)
        for entry in found
        if isinstance(entry, LogGap) and entry.start_ns < gap.end_ns and entry.end_ns > gap.start_ns
    ]
    return tuple(sorted([*new, *left], key=stamp_ns))
