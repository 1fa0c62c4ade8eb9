"""Follow a log: read its history, poll for new lines, and read recent time ranges again for late lines.

Polling adapts to how many lines arrive. After the job has ended, the follower keeps reading until no more
lines are expected.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from math import inf

from api_client.clock import Clock, epoch_ms
from api_client.http.retry import ENDLESS, retrying
from api_client.models.logs import (
    MS_PER_S,
    NS_PER_MS,
    NS_PER_S,
    FetchJob,
    FetchPage,
    LogBatch,
    LogEnd,
    LogEntry,
    LogGap,
    LogLine,
    stamp_ns,
)
from api_client.streams.deduplicator import LineDeduplicator
from api_client.streams.job_poller import JobPoller, ServerTime
from api_client.streams.logs import LATENESS_MS
from api_client.streams.pages import PageSource
from api_client.streams.reader import ParallelReader, RangeReader, Window, windows

BUSY_INTERVAL_S = 1.0
QUIET_INTERVAL_S = 2.2
INTERVAL_GROWTH = 1.4
"""The interval of polls grows by this factor unless lines keep arriving; occasional lines do not count.

Each line is first seen within 3 s of its arrival.
"""

GENEROUS_LATENESS_MS = 300 * MS_PER_S
"""Used instead of ``LATENESS_MS`` while few lines are tracked: nodes' clocks may be minutes apart.

During this time, timestamps ahead of our own clock are not used as the server's time: their node's clock may
be wrong.
"""

GENEROUS_LINES = 100_000
CHEAP_LINES = 240
CHEAP_CHARACTERS = 512 * 1024  # up to here every poll is a deep read: it fits a small page
DEDUPLICATED_LINES = 1_000_000  # more are settled without having been read again for late lines
EDGE_OVERLAP_S = 2.0  # how much a poll of a busy log reads again
DEEP_PAGES_PER_S = 0.75  # average cost of deep reads of a busy log, and of reads of its last minute
DEEP_INTERVAL_S = 2.5
DEEP_INTERVAL_LIMIT_S = 60.0
SHORTEST_DRAIN_S = 65.0  # lines may arrive a minute after the job's end
DRAIN_QUIET_S = 10.0  # the log must also have been quiet for this long


class PollPacer:
    """Paces one kind of read: the more pages it took last time, the longer the interval to the next one.

    Its average cost is at most ``pages_per_s``, unless the interval would exceed ``limit_s``; it is never
    due again within ``interval_s``. All times are in seconds.
    """

    def __init__(self, clock: Clock, *, pages_per_s: float, interval_s: float, limit_s: float) -> None:
        self._clock = clock
        self._pages_per_s = pages_per_s
        self._shortest_s = interval_s
        self._longest_s = limit_s
        self._cost_s = 0.0
        self._began_s: float | None = None

    def is_due(self, within_s: float | None = None) -> bool:
        """Return True if the next read is due, at most ``within_s`` after the last one began."""
        if self._began_s is None:
            return True
        interval_s = min(max(self._cost_s, self._shortest_s), self._longest_s)
        if within_s is not None:
            interval_s = min(interval_s, within_s)
        return self._clock.monotonic() - self._began_s >= interval_s

    def begin(self) -> None:
        self._began_s = self._clock.monotonic()

    def end(self, page_count: int) -> None:
        self._cost_s = page_count / self._pages_per_s


DRAIN_BEYOND_DELAYS_S = 10.0  # margin for late lines that are later than any seen so far
LONGEST_DRAIN_DEEP_INTERVAL_S = 5.0
DRAIN_SLACK_S = 5.0  # the last full read may begin this long before the end of the wait
SLOW_INTERVAL_S = 4.0  # after so long without a line, the next is unlikely to be followed by others soon
MIN_PAUSE_SHARE = 0.3  # of the interval, between polls that take long themselves
MAX_READ_S = 5.0  # limit for one read of new lines, even if more keep arriving; the next poll continues
NEWEST_LINE_SEARCH_WINDOWS = 8


class Follower:
    """Follows one log. Use it once, by iterating over ``stream()``.

    Reads from ``start_ms`` (epoch milliseconds), or from the job's beginning; with ``newest_first``, what was
    logged before now comes backward. After the job's end, it waits for late lines for ``drain_s`` seconds,
    by default ``SHORTEST_DRAIN_S``, or longer if lines of this log arrived later than that. It does not wait
    once the server says that the log is complete.

    A time range of the log is *settled* once no more late lines are expected in it. A *deep read* reads
    everything that is not settled yet.
    """

    def __init__(
        self,
        fetch: FetchPage,
        fetch_job: FetchJob,
        *,
        clock: Clock,
        start_ms: int | None = None,
        newest_first: bool = False,
        drain_s: float | None = None,
    ) -> None:
        self._given_drain_s = drain_s
        self._newest_first = newest_first
        self._clock = clock
        self._fetch_job = fetch_job
        self._job_poller = JobPoller(fetch_job, clock=clock)
        self._pages = PageSource(fetch, clock=clock)
        self._server_time = ServerTime(clock)
        self._deduplicator = LineDeduplicator()
        self._gaps: list[Window] = []
        self._start_ms = start_ms
        self._settled_ms = self._delivered_ns = 0
        self._delivered_count = 0
        self._delivered_s = clock.monotonic()
        self._interval_s = BUSY_INTERVAL_S
        self._is_quiet = False
        self._edge = PollPacer(clock, pages_per_s=inf, interval_s=BUSY_INTERVAL_S, limit_s=inf)
        self._recent = self._make_pacer()
        self._deep = self._make_pacer()
        self._deep_server_ns: int | None = None
        self._longest_delay_ns = 0
        self._has_read_it_complete = False
        self._reported_finished = False
        self._quiet_read_began_s = -inf

    @property
    def tracked_line_count(self) -> int:
        """Number of lines tracked for deduplication."""
        return self._deduplicator.line_count

    async def stream(self) -> AsyncGenerator[LogBatch | LogEnd, None]:
        """Yield batches, and finally the end with the finished job.

        Yields batches of the history (``caught_up`` false), an empty batch at the live edge, then batches
        as lines arrive, and one LogEnd. Lines that are not ``late`` come in time order, except those of a
        history that is read ``newest_first``: if that takes long, new lines come in between. Transient
        errors are retried indefinitely; raises the other RequestErrors (Unauthorized, NotFound if the job
        was deleted, …), and those of the first request.
        """
        await self._begin()
        history = self._read_history_backwards() if self._newest_first else self._read_history()
        async with aclosing(history) as batches:
            async for batch in batches:
                yield batch
        yield LogBatch((), caught_up=True)
        is_over = self._job_poller.is_long_finished(self._server_time.newest_ns) or self._is_known_complete()
        poll_s = 0.0
        while not is_over:
            await self._clock.sleep(max(self._interval_s - poll_s, self._interval_s * MIN_PAUSE_SHARE))
            began_s = self._clock.monotonic()
            await self._job_poller.poll_when_due(at_once=self._pages.is_complete)
            count, delivered_s = self._delivered_count, self._delivered_s
            reads = self._due_reads()
            for reader, pacer in reads:
                async with aclosing(self._read(reader, pacer, is_caught_up=True)) as batches:
                    async for batch in batches:
                        yield batch
            self._is_quiet = self._delivered_count == count
            self._adapt_interval(began_s - delivered_s)
            self._note_quiet_read(began_s, [pacer for _, pacer in reads])
            if self._must_report_end():
                yield LogBatch((), caught_up=True, finished_job=self._job_poller.finished_job)
            if self._is_known_complete() or self._is_drained():
                await self._job_poller.poll()
                is_over = self._job_poller.finished_job is not None
            poll_s = self._clock.monotonic() - began_s
        if self._job_poller.finished_job is not None:
            yield LogEnd(self._job_poller.finished_job)

    def _is_known_complete(self) -> bool:
        """Return True if the server said that the log is complete, and all of it was read after that."""
        return (
            self._job_poller.finished_job is not None
            and self._has_read_it_complete
            and self._pages.is_complete
        )

    def _is_drained(self) -> bool:
        finished_s = self._job_poller.finished_s
        if finished_s is None:
            return False
        now_s = self._clock.monotonic()
        drain_s = self._drain_s()
        if now_s - finished_s < drain_s:
            return False
        # A long read may have passed a position before its late line arrived.
        if self._quiet_read_began_s - finished_s < max(drain_s - DRAIN_SLACK_S, 0.0):
            return False
        return now_s - self._delivered_s >= min(drain_s, DRAIN_QUIET_S)

    def _drain_s(self) -> float:
        if self._given_drain_s is not None:
            return self._given_drain_s
        known_s = self._longest_delay_ns / NS_PER_S + DRAIN_BEYOND_DELAYS_S
        return min(max(SHORTEST_DRAIN_S, known_s), GENEROUS_LATENESS_MS / MS_PER_S)

    def _must_report_end(self) -> bool:
        """Return True if the job's end is new and more lines may still arrive."""
        is_finished = self._job_poller.finished_job is not None and not self._pages.is_complete
        is_news = is_finished and not self._reported_finished
        self._reported_finished = is_finished
        return is_news

    async def _read_history(self) -> AsyncGenerator[LogBatch, None]:
        async with aclosing(self._read_settled_history()) as batches:
            async for batch in batches:
                yield batch
        reader = self._reader(self._settled_ms, is_poll=False)
        async with aclosing(self._read(reader, self._deep, is_caught_up=False)) as batches:
            async for batch in batches:
                yield batch

    async def _read_history_backwards(self) -> AsyncGenerator[LogBatch, None]:
        self._deep.begin()
        page_count, final_ms = 0, self._final_before_ms()
        server_ns, was_complete = self._server_time.lower_ns(), self._pages.is_complete
        reader = ParallelReader(self._pages, self._settled_ms, self._end_ms(), newest_first=True)
        self._edge.begin()
        has_newest_line = False
        async with aclosing(reader.batches()) as batches:
            async for entries in batches:
                page_count += 1
                lines = self._without_gaps(entries)
                self._deduplicator.new_lines(lines, final_ms)
                if lines:
                    self._note(lines)
                    has_newest_line = True
                if self._deduplicator.line_count > DEDUPLICATED_LINES:
                    final_ms = max(final_ms, stamp_ns(entries[0]) // NS_PER_MS)
                yield LogBatch(tuple(entries), caught_up=False)
                await self._job_poller.poll_when_due()
                # Everything from the newest line's millisecond on has been read: the reads don't overlap.
                if has_newest_line and self._edge.is_due():
                    new = self._read(self._reader(self._edge_start_ms(0)), self._edge, is_caught_up=True)
                    async with aclosing(new) as new_batches:
                        async for batch in new_batches:
                            yield batch
        self._settle(final_ms)
        self._deep.end(page_count)
        self._deep_server_ns, self._has_read_it_complete = server_ns, was_complete

    async def _read_settled_history(self) -> AsyncGenerator[LogBatch, None]:
        start_ms, final_ms = self._settled_ms, self._final_before_ms()
        reader = ParallelReader(self._pages, start_ms, final_ms)
        async with aclosing(reader.batches()) as batches:
            async for entries in batches:
                fresh = self._fresh(entries, remember_from_ms=final_ms)
                part = (stamp_ns(entries[-1]) // NS_PER_MS - start_ms) / (final_ms - start_ms)
                yield LogBatch(fresh, caught_up=False, read_part=min(max(part, 0.0), 1.0))
                await self._job_poller.poll_when_due()
        self._settle(final_ms)

    def _end_ms(self) -> int:
        """Return an end well after the server's current time, regardless of our clock."""
        if self._job_poller.job is not None:
            self._server_time.observe_job(self._job_poller.job)
        return max(self._server_time.upper_ms(), self._settled_ms + 1)

    def _reader(self, start_ms: int, end_ms: int | None = None, *, is_poll: bool = True) -> RangeReader:
        until_ms = self._end_ms() if end_ms is None else end_ms
        return RangeReader(self._pages, start_ms, until_ms, is_poll=is_poll, skip=self._gaps)

    async def _begin(self) -> None:
        if self._start_ms is None:
            # Report an outage at once, but retry after a maintenance page.
            first_read = replace(ENDLESS, max_attempts=1)
            job = await retrying(self._fetch_job, first_read, sleep=self._clock.sleep)
            self._start_ms = epoch_ms(job.earliest_time(self._clock.now()))
        self._settled_ms, self._delivered_ns = self._start_ms, self._start_ms * NS_PER_MS
        await self._job_poller.poll()
        await self._locate_newest_line()

    async def _locate_newest_line(self) -> None:
        """Find the newest line: it shows the server's time, and thus which part of the history is settled."""
        ranges = windows(self._settled_ms, self._end_ms())
        for start_ms, end_ms in ranges[: -NEWEST_LINE_SEARCH_WINDOWS - 1 : -1]:
            newest_ns = await self._pages.newest_stamp_ns(start_ms, end_ms)
            if newest_ns is not None:
                self._server_time.observe_line(newest_ns)
                return

    def _make_pacer(self) -> PollPacer:
        return PollPacer(
            self._clock,
            pages_per_s=DEEP_PAGES_PER_S,
            interval_s=DEEP_INTERVAL_S,
            limit_s=DEEP_INTERVAL_LIMIT_S,
        )

    def _adapt_interval(self, silent_s: float) -> None:
        longer_s = min(self._interval_s * INTERVAL_GROWTH, QUIET_INTERVAL_S)
        # Occasional lines are shown soon enough without frequent polling.
        is_busy = not self._is_quiet and silent_s <= SLOW_INTERVAL_S
        self._interval_s = BUSY_INTERVAL_S if is_busy else longer_s

    def _note_quiet_read(self, began_s: float, pacers: list[PollPacer]) -> None:
        """Record when the last full read after the job's end began, if no line came since."""
        if not self._is_quiet or self._job_poller.finished_s is None:
            self._quiet_read_began_s = -inf
        elif self._deep in pacers:
            self._quiet_read_began_s = began_s

    def _due_reads(self) -> list[tuple[RangeReader, PollPacer]]:
        is_short = self._deduplicator.long_characters <= CHEAP_CHARACTERS
        if self._pages.is_complete or (is_short and self._deduplicator.line_count <= CHEAP_LINES):
            return [(self._reader(self._settled_ms), self._deep)]
        edge_ms = self._edge_start_ms(0 if self._is_quiet else EDGE_OVERLAP_S)
        reads = [(self._reader(edge_ms), self._edge)]
        within_s = LONGEST_DRAIN_DEEP_INTERVAL_S if self._job_poller.finished_s is not None else None
        if self._deep.is_due(within_s):
            self._recent.begin()  # the deep read includes the last minute
            reads.append((self._reader(self._settled_ms, edge_ms), self._deep))
        elif self._recent.is_due():
            # Most late lines are not later than this, and need not wait for the deep read.
            lower_ms = (self._server_time.lower_ns() or 0) // NS_PER_MS
            recent_ms = max(self._settled_ms, lower_ms - LATENESS_MS)
            reads.append((self._reader(recent_ms, edge_ms), self._recent))
        return reads

    async def _read(
        self, reader: RangeReader, pacer: PollPacer, *, is_caught_up: bool
    ) -> AsyncGenerator[LogBatch, None]:
        """Read to the end; a deep read starts at the settled position and settles what is final."""
        pacer.begin()
        began_s = self._clock.monotonic()
        server_ns = self._server_time.lower_ns()
        was_complete = self._pages.is_complete
        may_settle = pacer is self._deep
        while not reader.is_done:
            # Computed before the request: lines that arrive while it is answered may be missing from it.
            final_before_ms = self._final_before_ms()
            entries = await reader.next_batch()
            settled_ms = self._settled_ms
            if may_settle:
                settled_ms = max(settled_ms, min(final_before_ms, reader.position_ms))
                may_settle = final_before_ms >= reader.position_ms
            fresh = self._fresh(entries, remember_from_ms=settled_ms)
            if self._deduplicator.line_count > DEDUPLICATED_LINES:
                settled_ms = max(settled_ms, self._final_before_ms())
            self._settle(settled_ms)
            if fresh:
                yield LogBatch(fresh, caught_up=is_caught_up)
            await self._job_poller.poll_when_due()
            is_behind_the_edge = reader.end_ms * NS_PER_MS <= self._delivered_ns
            is_long = is_caught_up and self._clock.monotonic() - began_s > MAX_READ_S
            if is_long and fresh and not is_behind_the_edge:
                break  # many new lines: check for late lines before reading on
            # A long read of older lines must not delay new ones.
            if is_behind_the_edge and self._edge.is_due():
                edge_reader = self._reader(self._edge_start_ms(overlap_s=0))
                async with aclosing(self._read(edge_reader, self._edge, is_caught_up=True)) as batches:
                    async for batch in batches:
                        yield batch
        pacer.end(reader.page_count)
        if pacer is self._deep:
            self._deep_server_ns = server_ns
            self._has_read_it_complete = was_complete and reader.is_done

    def _edge_start_ms(self, overlap_s: float) -> int:
        return max(self._settled_ms, self._delivered_ns // NS_PER_MS - int(overlap_s * MS_PER_S))

    def _final_before_ms(self) -> int:
        """Return the time before which a read made now is final, because all lines have arrived.

        The result is never after the newest line.
        """
        if self._deduplicator.line_count <= GENEROUS_LINES:
            lower_ns, lateness_ms = self._server_time.cautious_ns(), GENEROUS_LATENESS_MS
        else:
            lower_ns, lateness_ms = self._server_time.lower_ns(), LATENESS_MS
        newest_ns = self._server_time.newest_ns
        if lower_ns is None or newest_ns is None:
            return self._settled_ms
        final_ms = lower_ns // NS_PER_MS - lateness_ms
        return min(final_ms, newest_ns // NS_PER_MS)

    def _settle(self, before_ms: int) -> None:
        if before_ms > self._settled_ms:
            self._settled_ms = before_ms
            self._deduplicator.forget_before(before_ms)
            self._gaps = [gap for gap in self._gaps if gap[1] > before_ms]

    def _fresh(self, entries: list[LogEntry], *, remember_from_ms: int) -> tuple[LogEntry, ...]:
        """Return the entries not delivered before, in time order, with late lines marked."""
        gaps = [entry for entry in entries if isinstance(entry, LogGap)]
        fresh = self._deduplicator.new_lines(self._without_gaps(entries), remember_from_ms)
        delivered_ns = self._delivered_ns
        entries_and_gaps: list[LogEntry] = [
            line._replace(late=True) if line.timestamp_ns < delivered_ns else line for line in fresh
        ]
        if gaps:
            entries_and_gaps = sorted([*entries_and_gaps, *gaps], key=stamp_ns)
        if fresh:
            self._note(fresh)
        return tuple(entries_and_gaps)

    def _without_gaps(self, entries: list[LogEntry]) -> list[LogLine]:
        """Return the lines; gaps are not read again."""
        gaps = [_window_of(entry) for entry in entries if isinstance(entry, LogGap)]
        if gaps:
            self._gaps = sorted([*self._gaps, *gaps])
        return [entry for entry in entries if isinstance(entry, LogLine)]

    def _note(self, fresh: list[LogLine]) -> None:
        oldest_ns, newest_ns = fresh[0].timestamp_ns, fresh[-1].timestamp_ns
        if self._deep_server_ns is not None:
            self._longest_delay_ns = max(self._longest_delay_ns, self._deep_server_ns - oldest_ns)
        self._server_time.observe_line(newest_ns)
        self._delivered_ns = max(self._delivered_ns, newest_ns)
        self._delivered_count += len(fresh)
        self._delivered_s = self._clock.monotonic()


def _window_of(gap: LogGap) -> Window:
    return gap.start_ns // NS_PER_MS, -(-gap.end_ns // NS_PER_MS)
