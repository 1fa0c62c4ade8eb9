"""Follow a log: read its history, poll for new lines, and read recent time ranges again for late lines.

Polling adapts to how many lines arrive; ``FollowOptions`` has the intervals. After the job has ended, the
follower keeps reading until no more lines are expected.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from math import inf

from api_client.clock import Clock
from api_client.models.logs import (
    MS_PER_S,
    NS_PER_MS,
    NS_PER_S,
    FetchJob,
    FetchPage,
    IsComplete,
    LogBatch,
    LogEnd,
    LogEntry,
    LogGap,
    LogLine,
    stamp_ns,
)
from api_client.streams.deduplicator import LineDeduplicator
from api_client.streams.job_poller import JobPoller, ServerTime
from api_client.streams.pages import MAX_PAGE_LINES, PageSource
from api_client.streams.parallel import ParallelReader
from api_client.streams.reader import RangeReader, Window, windows


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """Times in seconds; the defaults suit the API as published.

    A time range of the log is *settled* once no more late lines are expected in it. A *deep read* reads
    everything that is not settled yet.

    - ``busy_interval_s`` to ``quiet_interval_s``: interval of polls, growing by ``interval_growth`` per
      poll unless lines keep arriving; occasional lines do not count. Each line is first seen within 3 s
      of its arrival.
    - ``job_interval_s``: interval for polling the job.
    - ``lateness_s``: a line may arrive this long after its timestamp (API facts: about a minute).
    - ``generous_lateness_s``: used instead of ``lateness_s`` while at most ``generous_lines`` lines are
      tracked, for nodes whose clocks are minutes behind the others'. During this time, timestamps ahead
      of our own clock are not used as the server's time: their node's clock may be wrong.
    - ``cheap_lines``, ``cheap_characters``: every poll is a deep read while no more lines than this are
      unsettled, and the long ones among them have no more text than this: they fit a small page.
    - ``deduplicated_lines``: maximum number of tracked lines. More lines are settled without having been
      read again, so late lines among them are not found.
    - ``edge_overlap_s``: how much a poll of a busy log reads again.
    - ``deep_pages_per_s``: maximum average cost of deep reads of a busy log, which are
      ``deep_interval_s`` to ``deep_interval_limit_s`` apart. Reading only the last ``lateness_s`` again
      may cost as much. Both cost half once neither has found a line for ``calm_after_s``.
    - ``drain_s``: how long to wait for late lines after the job was seen to have ended. None decides by
      the log: ``shortest_drain_s`` (a line may arrive a minute late), or longer if lines of this log
      arrived later than that, up to ``generous_lateness_s``. The log must also have been quiet for
      ``drain_quiet_s``.
    - ``in_flight``: number of parts of a long history that are read concurrently.
    - ``clock_margin_s``: how far the server's clock may be ahead of ours and of the newest line.
    - ``page_limit``: lines per page, at most the API's maximum.
    """

    busy_interval_s: float = 1.0
    quiet_interval_s: float = 2.2
    interval_growth: float = 1.4
    job_interval_s: float = 7.5
    lateness_s: float = 75.0
    generous_lateness_s: float = 300.0
    generous_lines: int = 100_000
    cheap_lines: int = 240
    cheap_characters: int = 512 * 1024
    deduplicated_lines: int = 1_000_000
    edge_overlap_s: float = 2.0
    deep_pages_per_s: float = 2.0
    calm_after_s: float = 300.0
    deep_interval_s: float = 2.5
    deep_interval_limit_s: float = 60.0
    drain_s: float | None = None
    shortest_drain_s: float = 65.0
    drain_quiet_s: float = 10.0
    in_flight: int = 3
    clock_margin_s: float = 24 * 3600.0
    page_limit: int = MAX_PAGE_LINES


QUIET_FACTOR = 2.0
"""Reads that have found nothing for a long time cost this many times less."""


class PollPacer:
    """Paces one kind of read: the more pages it took last time, the longer the interval to the next one.

    Its average cost is at most ``pages_per_s``, unless the interval would exceed ``limit_s``; it is never
    due again within ``interval_s``. All times are in seconds. In a calm period it costs ``QUIET_FACTOR``
    times less.
    """

    def __init__(self, clock: Clock, *, pages_per_s: float, interval_s: float, limit_s: float) -> None:
        self._clock = clock
        self._pages_per_s = pages_per_s
        self._shortest_s = interval_s
        self._longest_s = limit_s
        self._cost_s = 0.0
        self._began_s: float | None = None

    def is_due(self, within_s: float | None = None, *, calm: bool = False) -> bool:
        """Return True if the next read is due, at most ``within_s`` after the last one began."""
        if self._began_s is None:
            return True
        wanted_wait_s = self._cost_s * QUIET_FACTOR if calm else self._cost_s
        interval_s = min(max(wanted_wait_s, self._shortest_s), self._longest_s)
        if within_s is not None:
            interval_s = min(interval_s, within_s)
        return self._clock.monotonic() - self._began_s >= interval_s

    def begin(self) -> None:
        """Record the start of a read."""
        self._began_s = self._clock.monotonic()

    def end(self, page_count: int) -> None:
        """Record the end of a read, and the number of pages that it took."""
        self._cost_s = page_count / self._pages_per_s


DRAIN_BEYOND_DELAYS_S = 10.0
"""Margin for late lines that are later than any seen so far."""

LONGEST_DRAIN_DEEP_INTERVAL_S = 5.0
DRAIN_SLACK_S = 5.0
"""The last full read may begin this long before the end of the wait."""

SLOW_INTERVAL_S = 4.0
"""After this long without a line, the next one is unlikely to be followed by others soon."""

MIN_PAUSE_SHARE = 0.3
"""Minimum pause between polls, as a fraction of the interval, if the polls themselves take long."""

MAX_READ_S = 5.0
"""Limit for one read of new lines, even if more keep arriving; the next poll continues."""

NEWEST_LINE_SEARCH_WINDOWS = 8


class Follower:
    """Follows one log. Use it once, by iterating over ``stream()``."""

    def __init__(
        self,
        fetch: FetchPage,
        fetch_job: FetchJob,
        *,
        clock: Clock,
        start_ms: int,
        options: FollowOptions,
        is_complete: IsComplete = lambda: False,
    ) -> None:
        self._options = options
        self._clock = clock
        self._job_poller = JobPoller(fetch_job, clock=clock, interval_s=options.job_interval_s)
        self._pages = PageSource(fetch, clock=clock, limit=options.page_limit)
        self._server_time = ServerTime(clock)
        self._deduplicator = LineDeduplicator()
        self._gaps: list[Window] = []
        self._settled_ms = start_ms
        self._delivered_ns = start_ms * NS_PER_MS
        self._delivered_count = 0
        self._delivered_s = clock.monotonic()
        self._interval_s = options.busy_interval_s
        self._is_quiet = False
        self._edge = PollPacer(clock, pages_per_s=inf, interval_s=options.busy_interval_s, limit_s=inf)
        self._recent = self._make_pacer()
        self._deep = self._make_pacer()
        self._found_late_s = -inf
        self._deep_server_ns: int | None = None
        self._longest_delay_ns = 0
        self._is_complete = is_complete
        self._has_read_it_complete = False
        self._reported_finished = False
        self._quiet_read_began_s = -inf

    @property
    def tracked_line_count(self) -> int:
        """Number of lines tracked for deduplication."""
        return self._deduplicator.line_count

    async def stream(self) -> AsyncGenerator[LogBatch | LogEnd, None]:
        """Yield batches, and finally the end with the finished job. Raises permanent RequestErrors."""
        await self._job_poller.poll()
        await self._locate_newest_line()
        async with aclosing(self._read_settled_history()) as batches:
            async for batch in batches:
                yield batch
        history = self._reader(self._settled_ms, confirm=True)
        async with aclosing(self._read(history, self._deep, is_caught_up=False)) as batches:
            async for batch in batches:
                yield batch
        yield LogBatch((), caught_up=True)
        is_over = self._job_poller.is_long_finished(self._server_time.newest_ns) or self._is_known_complete()
        poll_s = 0.0
        while not is_over:
            await self._clock.sleep(max(self._interval_s - poll_s, self._interval_s * MIN_PAUSE_SHARE))
            began_s = self._clock.monotonic()
            await self._job_poller.poll_when_due(at_once=self._is_complete())
            async with aclosing(self._poll()) as batches:
                async for batch in batches:
                    yield batch
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
            self._job_poller.finished_job is not None and self._has_read_it_complete and self._is_complete()
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
        return now_s - self._delivered_s >= min(drain_s, self._options.drain_quiet_s)

    def _drain_s(self) -> float:
        options = self._options
        if options.drain_s is not None:
            return options.drain_s
        known_s = self._longest_delay_ns / NS_PER_S + DRAIN_BEYOND_DELAYS_S
        return min(max(options.shortest_drain_s, known_s), options.generous_lateness_s)

    def _must_report_end(self) -> bool:
        """Return True if the job's end is new and more lines may still arrive."""
        is_finished = self._job_poller.finished_job is not None and not self._is_complete()
        is_news = is_finished and not self._reported_finished
        self._reported_finished = is_finished
        return is_news

    async def _read_settled_history(self) -> AsyncGenerator[LogBatch, None]:
        start_ms, final_ms = self._settled_ms, self._final_before_ms()
        reader = ParallelReader(self._pages, start_ms, final_ms, in_flight=self._options.in_flight)
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
        return max(self._server_time.upper_ms(self._options.clock_margin_s), self._settled_ms + 1)

    def _reader(self, start_ms: int, end_ms: int | None = None, *, confirm: bool = False) -> RangeReader:
        until_ms = self._end_ms() if end_ms is None else end_ms
        return RangeReader(self._pages, start_ms, until_ms, confirm=confirm, skip=self._gaps)

    def _edge_reader(self, start_ms: int) -> RangeReader:
        """Create a reader for new lines. It settles nothing, so settling reads find what it misses."""
        return RangeReader(
            self._pages, start_ms, self._end_ms(), confirm=False, may_miss=True, skip=self._gaps
        )

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
            pages_per_s=self._options.deep_pages_per_s,
            interval_s=self._options.deep_interval_s,
            limit_s=self._options.deep_interval_limit_s,
        )

    async def _poll(self) -> AsyncGenerator[LogBatch, None]:
        """Read new lines, and late lines if that is cheap or due."""
        count = self._delivered_count
        began_s, before_s = self._clock.monotonic(), self._delivered_s
        reads = self._due_reads()
        for reader, pacer in reads:
            async with aclosing(self._read(reader, pacer, is_caught_up=True)) as batches:
                async for batch in batches:
                    yield batch
        has_new_lines = self._delivered_count != count
        if has_new_lines or self._job_poller.finished_s is None:
            self._quiet_read_began_s = -inf
        elif any(pacer is self._deep for _, pacer in reads):
            self._quiet_read_began_s = began_s
        self._is_quiet = not has_new_lines
        longer_s = min(self._interval_s * self._options.interval_growth, self._options.quiet_interval_s)
        # Occasional lines are shown soon enough without frequent polling.
        is_busy = has_new_lines and began_s - before_s <= SLOW_INTERVAL_S
        self._interval_s = self._options.busy_interval_s if is_busy else longer_s

    def _due_reads(self) -> list[tuple[RangeReader, PollPacer]]:
        is_short = self._deduplicator.long_characters <= self._options.cheap_characters
        if self._is_complete() or (is_short and self._deduplicator.line_count <= self._options.cheap_lines):
            return [(self._reader(self._settled_ms), self._deep)]
        edge_ms = self._edge_start_ms(0 if self._is_quiet else self._options.edge_overlap_s)
        reads = [(self._edge_reader(edge_ms), self._edge)]
        within_s = LONGEST_DRAIN_DEEP_INTERVAL_S if self._job_poller.finished_s is not None else None
        is_calm = self._clock.monotonic() - self._found_late_s > self._options.calm_after_s
        if self._deep.is_due(within_s, calm=is_calm):
            self._recent.begin()  # the deep read includes the last minute
            reads.append((self._reader(self._settled_ms, edge_ms), self._deep))
        elif self._recent.is_due(calm=is_calm):
            # Most late lines are not later than this, and need not wait for the deep read.
            lower_ms = (self._server_time.lower_ns() or 0) // NS_PER_MS
            recent_ms = max(self._settled_ms, lower_ms - int(self._options.lateness_s * MS_PER_S))
            reads.append((self._reader(recent_ms, edge_ms), self._recent))
        return reads

    async def _read(
        self, reader: RangeReader, pacer: PollPacer, *, is_caught_up: bool
    ) -> AsyncGenerator[LogBatch, None]:
        """Read to the end; a deep read starts at the settled position and settles what is final."""
        pacer.begin()
        began_s = self._clock.monotonic()
        server_ns = self._server_time.lower_ns()
        was_complete = self._is_complete()
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
            if self._deduplicator.line_count > self._options.deduplicated_lines:
                settled_ms = max(settled_ms, self._final_before_ms())
            self._settle(settled_ms)
            if fresh:
                if pacer is not self._edge and any(isinstance(one, LogLine) and one.late for one in fresh):
                    self._found_late_s = self._clock.monotonic()
                yield LogBatch(fresh, caught_up=is_caught_up)
            await self._job_poller.poll_when_due()
            is_behind_the_edge = reader.end_ms * NS_PER_MS <= self._delivered_ns
            is_long = is_caught_up and self._clock.monotonic() - began_s > MAX_READ_S
            if is_long and fresh and not is_behind_the_edge:
                break  # many new lines: check for late lines before reading on
            # A long read of older lines must not delay new ones.
            if is_behind_the_edge and self._edge.is_due():
                edge_reader = self._edge_reader(self._edge_start_ms(overlap_s=0))
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
        if self._deduplicator.line_count <= self._options.generous_lines:
            lower_ns, lateness_s = self._server_time.cautious_ns(), self._options.generous_lateness_s
        else:
            lower_ns, lateness_s = self._server_time.lower_ns(), self._options.lateness_s
        newest_ns = self._server_time.newest_ns
        if lower_ns is None or newest_ns is None:
            return self._settled_ms
        final_ms = lower_ns // NS_PER_MS - int(lateness_s * MS_PER_S)
        return min(final_ms, newest_ns // NS_PER_MS)

    def _settle(self, before_ms: int) -> None:
        if before_ms > self._settled_ms:
            self._settled_ms = before_ms
            self._deduplicator.forget_before(before_ms)
            self._gaps = [gap for gap in self._gaps if gap[1] > before_ms]

    def _fresh(self, entries: list[LogEntry], *, remember_from_ms: int) -> tuple[LogEntry, ...]:
        """Return the entries not delivered before, in time order, with late lines marked."""
        gaps = [entry for entry in entries if isinstance(entry, LogGap)]
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        fresh = self._deduplicator.new_lines(lines, remember_from_ms)
        delivered_ns = self._delivered_ns
        found: list[LogEntry] = [_late(line) if line.timestamp_ns < delivered_ns else line for line in fresh]
        if gaps:
            found = sorted([*found, *gaps], key=stamp_ns)
            self._gaps = sorted([*self._gaps, *map(_window_of, gaps)])
        if fresh:
            self._note(fresh)
        return tuple(found)

    def _note(self, fresh: list[LogLine]) -> None:
        oldest_ns, newest_ns = fresh[0].timestamp_ns, fresh[-1].timestamp_ns
        if self._deep_server_ns is not None:
            self._longest_delay_ns = max(self._longest_delay_ns, self._deep_server_ns - oldest_ns)
        self._server_time.observe_line(newest_ns)
        self._delivered_ns = max(self._delivered_ns, newest_ns)
        self._delivered_count += len(fresh)
        self._delivered_s = self._clock.monotonic()


def _late(line: LogLine) -> LogLine:
    return LogLine(line.timestamp_ns, line.message, line.replica, line.level, line.request_id, late=True)


def _window_of(gap: LogGap) -> Window:
    return gap.start_ns // NS_PER_MS, -(-gap.end_ns // NS_PER_MS)
