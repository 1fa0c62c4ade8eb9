"""Read a time range of a log, reread a gap, or poll for new lines; every line is returned exactly once.

Lines that cannot be read (a millisecond with more lines than the API can return, a time range that the server
cannot answer) are reported as a LogGap, never dropped silently. ``read_logs(…, end_ms=S)`` and ``Follower(…,
start_ms=S)`` together read each line once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from api_client.clock import Clock, epoch_ms
from api_client.models.logs import (
    MS_PER_S,
    NS_PER_MS,
    FetchPage,
    LogBatch,
    LogEntry,
    LogGap,
    LogLine,
    gap_with_lines,
    stamp_ns,
)
from api_client.streams.deduplicator import LineDeduplicator
from api_client.streams.job_poller import CLOCK_MARGIN_MS
from api_client.streams.pages import PageSource
from api_client.streams.reader import RangeReader, read_parts, window_of

LATENESS_MS = 75 * MS_PER_S  # a line may arrive this long after its timestamp


async def read_logs(
    pages: PageSource, *, start_ms: int, end_ms: int, newest_first: bool = False
) -> AsyncGenerator[LogBatch, None]:
    """Yield the lines ``start_ms <= t < end_ms`` (epoch milliseconds); the range may have any length.

    Batches go forward in time, or backward if ``newest_first``, but each batch is ascending. Its
    ``read_part`` is the fraction of the time range up to now that has been read. Parts of a long range are
    read concurrently. Transient errors are retried; raises the other RequestErrors.
    """
    until_ms = min(end_ms, epoch_ms(pages.clock.now()))
    async with aclosing(read_parts(pages, start_ms, end_ms, newest_first=newest_first)) as batches:
        async for entries in batches:
            reached_ms = stamp_ns(entries[0 if newest_first else -1]) // NS_PER_MS
            done_ms = until_ms - reached_ms if newest_first else reached_ms - start_ms
            fraction = min(max(done_ms / max(until_ms - start_ms, 1), 0.0), 1.0)
            yield LogBatch(tuple(entries), caught_up=False, read_part=fraction)


async def fill_gap(fetch: FetchPage, gap: LogGap, *, clock: Clock) -> tuple[LogEntry, ...]:
    """Read a gap again and return the lines not delivered before, in time order.

    Lines that are still not available are represented by a LogGap. Raises permanent RequestErrors.
    """
    start_ms, end_ms = window_of(gap)
    entries: list[LogEntry] = []
    async for batch in read_logs(PageSource(fetch, clock=clock), start_ms=start_ms, end_ms=end_ms):
        entries += batch.entries
    delivered_counts = Counter(gap.held)
    new_lines: list[LogLine] = []
    for entry in entries:
        if isinstance(entry, LogLine) and gap.start_ns <= entry.timestamp_ns < gap.end_ns:
            if delivered_counts[entry]:
                delivered_counts[entry] -= 1
            else:
                new_lines.append(entry)
    known_lines = [*gap.held, *new_lines]
    remaining_gaps = [
        gap_with_lines(
            max(entry.start_ns, gap.start_ns), min(entry.end_ns, gap.end_ns), entry.reason, known_lines
        )
        for entry in entries
        if isinstance(entry, LogGap) and entry.start_ns < gap.end_ns and entry.end_ns > gap.start_ns
    ]
    return tuple(sorted([*new_lines, *remaining_gaps], key=stamp_ns))


class LogIncrements:
    """Polls a log: each ``poll`` yields the lines that are new since the previous poll, including late lines.

    For logs that are polled rarely, or that do not belong to a job; others are read with ``Follower``. A page
    is assumed to be complete if an earlier page of at least its size was complete, so that most polls are a
    single request. ``known`` are the lines from ``start_ms`` on that the caller has already.
    """

    def __init__(
        self, fetch: FetchPage, *, clock: Clock, start_ms: int, known: Iterable[LogLine] = ()
    ) -> None:
        self._pages = PageSource(fetch, clock=clock)
        self._settled_ms = start_ms
        self._deduplicator = LineDeduplicator()
        self._deduplicator.new_lines(list(known))
        self._gaps: set[LogGap] = set()

    async def poll(self) -> AsyncGenerator[tuple[LogEntry, ...], None]:
        """Yield the new entries in time order; exhaust the iterator. Raises permanent RequestErrors."""
        now_ms = epoch_ms(self._pages.clock.now())
        newest_ms = self._settled_ms
        reader = RangeReader(self._pages, self._settled_ms, now_ms + CLOCK_MARGIN_MS, is_poll=True)
        while not reader.is_done:
            entries = await reader.next_batch()
            lines = [entry for entry in entries if isinstance(entry, LogLine)]
            gaps = {entry for entry in entries if isinstance(entry, LogGap)} - self._gaps
            self._gaps |= gaps
            if lines:
                newest_ms = max(newest_ms, lines[-1].timestamp_ns // NS_PER_MS)
            new_lines = self._deduplicator.new_lines(lines)
            yield tuple(sorted([*new_lines, *gaps], key=stamp_ns))
        # If a node's clock is ahead, its lines must not settle ranges in which other nodes still log.
        self._settled_ms = max(self._settled_ms, min(newest_ms, now_ms) - LATENESS_MS)
        self._deduplicator.forget_before(self._settled_ms)
