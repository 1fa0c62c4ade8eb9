"""Follow a log: read its history, poll for new lines, and reread recent time ranges for late lines.

The polling interval adapts to how many lines arrive. After the job has ended, the follower keeps reading
until no more lines are expected.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace

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
from api_client.streams.job_poller import CLOCK_MARGIN_MS, JobPoller, ServerTime
from api_client.streams.logs import LATENESS_MS, read_logs
from api_client.streams.pages import PageSource
from api_client.streams.reader import MAX_WINDOW_MS, RangeReader, Window, window_of

BUSY_INTERVAL_S = 1.0
QUIET_INTERVAL_S = 2.2
"""Polling interval unless lines keep arriving; short enough to see each line within 3 s of its arrival."""


GENEROUS_LATENESS_MS = 300 * MS_PER_S
"""Assumed maximum delay of late lines while few lines are tracked, in place of ``LATENESS_MS``.

Nodes' clocks may be minutes apart. For the same reason, the follower then assumes that the server's time is
not later than our own clock, even if a node writes later timestamps.
"""

GENEROUS_LINES = 100_000  # maximum number of tracked lines for GENEROUS_LATENESS_MS
DEEP_POLL_BYTES = 64 * 1024  # while fewer bytes are unsettled, each poll is a deep read of one small page
MAX_TRACKED_LINES = 1_000_000  # beyond this, the oldest lines are settled without a reread for late lines
MAX_REREAD_INTERVAL_S = 60.0  # maximum time between rereads of a time range


@dataclass(frozen=True, slots=True)
class _Read:
    """A read of a time range, and the follower's estimates when the read began."""

    reader: RangeReader
    began_s: float
    """Monotonic time of the beginning."""

    server_ns: int | None
    """Lower bound of the server's time."""

    final_ms: int
    """Lines before this time (epoch milliseconds) had all arrived."""

    was_complete: bool
    """True if the server had declared before the read that the log is complete."""


class Follower:
    """Follows one log. Use it once, by iterating over ``stream()``.

    Reads from ``start_ms`` (epoch milliseconds), or from the job's beginning. With ``newest_first``, the
    history (lines logged before now) comes backward. After the job's end, it waits for late lines for
    ``drain_s`` seconds, by default 65, or longer if lines of this log arrived later than that. It does not
    wait once the server declares that the log is complete.

    A time range of the log is *settled* once no more late lines are expected in it. A *deep read* rereads
    everything that is not settled yet, a *recent read* the range where most late lines appear, and an *edge
    read* only the range after the newest delivered line.
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
        self._requested_drain_s = drain_s
        self._newest_first = newest_first
        self._clock = clock
        self._fetch_job = fetch_job
        self._job_poller = JobPoller(fetch_job, clock=clock)
        self._pages = PageSource(fetch, clock=clock)
        self._server_time = ServerTime(clock)
        self._deduplicator = LineDeduplicator()
        self._gaps: list[Window] = []
        self._start_ms = start_ms
        self._settled_ms = self._newest_delivered_ns = 0
        self._last_delivery_s = clock.monotonic()
        self._is_quiet = False
        self._last_late_line_s = clock.monotonic()  # rereads are frequent after a late line; at first, too
        self._last_edge_read: _Read | None = None
        self._last_recent_read: _Read | None = None
        self._last_deep_read: _Read | None = None
        self._longest_delay_ns = 0
        self._has_reported_end = False

    @property
    def tracked_line_count(self) -> int:
        """Number of lines tracked for deduplication."""
        return self._deduplicator.line_count

    async def stream(self) -> AsyncGenerator[LogBatch | LogEnd, None]:
        """Yield batches, and finally the end with the finished job.

        Yields batches of the history (``caught_up`` false), an empty batch at the live edge, then batches
        as lines arrive, and one LogEnd. Lines that are not ``late`` come in time order, except lines of a
        history that is read ``newest_first``: if that takes long, new lines come in between. Transient
        errors are retried indefinitely; raises the other RequestErrors (Unauthorized, NotFound if the job
        was deleted, …), and all errors of the first request.
        """
        await self._prepare()
        async with aclosing(self._read_history()) as batches:
            async for batch in batches:
                yield batch
        yield LogBatch((), caught_up=True)
        is_over = self._job_poller.is_long_finished(self._server_time.newest_ns) or self._is_known_complete()
        pause_s = BUSY_INTERVAL_S
        while not is_over:
            await self._clock.sleep(pause_s)
            began_s = self._clock.monotonic()
            await self._job_poller.poll_when_due(at_once=self._pages.is_log_complete)
            previous_delivery_s = self._last_delivery_s
            async with aclosing(self._read(self._due_reads())) as batches:
                async for batch in batches:
                    yield batch
            delivery_interval_s = self._last_delivery_s - previous_delivery_s
            self._is_quiet = not delivery_interval_s
            # Lines more than 4 s apart do not count as a steady flow, so poll less often.
            interval_s = BUSY_INTERVAL_S if 0 < delivery_interval_s <= 4.0 else QUIET_INTERVAL_S
            pause_s = max(interval_s - (self._clock.monotonic() - began_s), 0.3 * interval_s)
            if self._must_report_end():
                yield LogBatch((), caught_up=True, finished_job=self._job_poller.finished_job)
            if self._is_known_complete() or self._is_drained():
                await self._job_poller.poll()
                is_over = self._job_poller.finished_job is not None
        if self._job_poller.finished_job is not None:
            yield LogEnd(self._job_poller.finished_job)

    def _is_known_complete(self) -> bool:
        """Return True if the last deep read began after the server had declared the log complete."""
        was_complete = self._last_deep_read is not None and self._last_deep_read.was_complete
        return self._job_poller.finished_job is not None and was_complete and self._pages.is_log_complete

    def _is_drained(self) -> bool:
        """Return True if the wait for late lines is over and lines have stopped arriving."""
        finished_s = self._job_poller.finished_s
        if finished_s is None or self._last_deep_read is None:
            return False
        # 10 s more than the longest delay observed, because the next line may be even later.
        expected_s = self._longest_delay_ns / NS_PER_S + 10.0
        # Lines may arrive a minute after the job's end.
        drain_s = min(max(65.0, expected_s), GENEROUS_LATENESS_MS / MS_PER_S)
        if self._requested_drain_s is not None:
            drain_s = self._requested_drain_s
        waited_s, quiet_s = (
            self._last_deep_read.began_s - finished_s,
            self._clock.monotonic() - self._last_delivery_s,
        )
        # The log must also have been quiet for a while; a limit ends the wait if lines never stop.
        is_quiet = quiet_s >= min(drain_s, 10.0) or waited_s >= GENEROUS_LATENESS_MS / MS_PER_S
        return waited_s >= drain_s and is_quiet

    def _must_report_end(self) -> bool:
        """Return True once after the job's end if more lines may arrive: the stream reports the end early."""
        is_finished = self._job_poller.finished_job is not None and not self._pages.is_log_complete
        must_report = is_finished and not self._has_reported_end
        self._has_reported_end = is_finished
        return must_report

    async def _read_history(self) -> AsyncGenerator[LogBatch, None]:
        """Read all lines logged until now; with ``newest_first``, yield new lines in between."""
        start_ms, newest_ns = self._settled_ms, self._server_time.newest_ns
        end_ms = self._end_ms() if newest_ns is None else newest_ns // NS_PER_MS + 1
        self._last_edge_read = read = self._plan_read(start_ms, start_ms)
        history = read_logs(self._pages, start_ms=start_ms, end_ms=end_ms, newest_first=self._newest_first)
        async with aclosing(history) as batches:
            async for batch in batches:
                lines = self._without_gaps(batch.entries)
                final_ns = read.final_ms * NS_PER_MS
                self._deduplicator.new_lines([line for line in lines if line.timestamp_ns >= final_ns])
                if lines:
                    self._record_delivered(lines)
                self._settle_before(read.final_ms)
                if self._deduplicator.line_count > MAX_TRACKED_LINES:
                    self._settle_before(stamp_ns(batch.entries[0]) // NS_PER_MS)
                yield replace(batch, read_part=None) if self._newest_first else batch
                await self._job_poller.poll_when_due()
                # The edge read begins at the newest delivered line, so it does not overlap the history.
                if self._newest_first and lines and self._is_edge_due():
                    async with aclosing(self._read([self._edge_read()])) as new_batches:
                        async for new_batch in new_batches:
                            yield new_batch
        self._last_deep_read = read
        if newest_ns is None and self._job_poller.is_long_finished(self._server_time.newest_ns):
            return  # everything up to now has been read, and an ended job logs nothing new
        async with aclosing(self._read([self._edge_read()])) as batches:
            async for batch in batches:
                yield batch

    async def _prepare(self) -> None:
        if self._start_ms is None:
            # Report an unreachable server at once (one attempt), but retry after a maintenance page.
            first_read = replace(ENDLESS, max_attempts=1)
            job = await retrying(self._fetch_job, first_read, sleep=self._clock.sleep)
            self._start_ms = epoch_ms(job.earliest_time(self._clock.now()))
        self._settled_ms, self._newest_delivered_ns = self._start_ms, self._start_ms * NS_PER_MS
        await self._job_poller.poll()
        # The newest line's timestamp gives the server's time, and thus which lines are settled. The newest
        # line of an ended job may be months old, so search around the job's end first.
        end_ms = self._end_ms()
        for until_ms in sorted({self._job_end_ms(end_ms), end_ms}):
            start_ms = max(self._settled_ms, until_ms - MAX_WINDOW_MS)
            newest_ns = await self._pages.newest_stamp_ns(start_ms, until_ms)
            if newest_ns is not None:
                self._server_time.observe_line(newest_ns)
                break

    def _job_end_ms(self, latest_ms: int) -> int:
        """Return an upper bound for the end of an ended job's log; ``latest_ms`` for other jobs."""
        job = self._job_poller.finished_job
        if job is None or job.updated_at is None:
            return latest_ms
        return min(max(epoch_ms(job.updated_at), self._settled_ms) + CLOCK_MARGIN_MS, latest_ms)

    def _end_ms(self) -> int:
        """Return an end bound well after the server's current time, even if our clock is far behind."""
        job = self._job_poller.job
        changed_at = None if job is None else job.updated_at or job.created_at
        times_ms = [epoch_ms(moment) for moment in (self._clock.now(), changed_at) if moment is not None]
        lower_ms = (self._server_time.lower_ns() or 0) // NS_PER_MS
        return max(*times_ms, lower_ms, self._settled_ms) + CLOCK_MARGIN_MS

    def _plan_read(self, start_ms: int, end_ms: int | None = None) -> _Read:
        until_ms = self._end_ms() if end_ms is None else end_ms
        reader = RangeReader(self._pages, start_ms, until_ms, is_poll=True, skip=self._gaps)
        server_ns, final_ms = self._server_time.lower_ns(), self._final_before_ms()
        return _Read(reader, self._clock.monotonic(), server_ns, final_ms, self._pages.is_log_complete)

    def _edge_read(self, overlap_ms: int = 0) -> _Read:
        self._last_edge_read = self._plan_read(
            max(self._settled_ms, self._newest_delivered_ns // NS_PER_MS - overlap_ms)
        )
        return self._last_edge_read

    def _is_edge_due(self) -> bool:
        return (
            self._last_edge_read is None
            or self._clock.monotonic() - self._last_edge_read.began_s >= BUSY_INTERVAL_S
        )

    def _due_reads(self) -> list[_Read]:
        """Return the reads of this poll, the newest range first."""
        if self._pages.is_log_complete or self._deduplicator.size_bytes <= DEEP_POLL_BYTES:
            return [self._plan_read(self._settled_ms)]
        # A poll of a busy log rereads the last two seconds.
        edge = self._edge_read(0 if self._is_quiet else 2 * MS_PER_S)
        edge_ms = edge.reader.start_ms
        is_ending = self._job_poller.finished_s is not None
        longest_s = 5.0 if is_ending else 2 * MAX_REREAD_INTERVAL_S
        if self._is_reread_due(self._last_deep_read, longest_s):
            return [edge, self._plan_read(self._settled_ms, edge_ms)]
        if self._is_reread_due(self._last_recent_read, MAX_REREAD_INTERVAL_S):
            # Most late lines are delayed by less than LATENESS_MS; find them before the next deep read.
            recent_ms = (self._server_time.lower_ns() or 0) // NS_PER_MS - LATENESS_MS
            self._last_recent_read = self._plan_read(max(self._settled_ms, recent_ms), edge_ms)
            return [edge, self._last_recent_read]
        return [edge]

    def _is_reread_due(self, last_read: _Read | None, max_interval_s: float) -> bool:
        """Return True if a reread is due: every ``max_interval_s``, more often if late lines have arrived."""
        if last_read is None:
            return True
        now_s, interval_s = self._clock.monotonic(), max_interval_s
        if now_s - self._last_late_line_s < MAX_REREAD_INTERVAL_S:
            # At most 0.75 pages a second on average for deep reads, and as many for recent reads.
            throttled_s = last_read.reader.page_count / 0.75
            interval_s = min(max(throttled_s, 2.5), MAX_REREAD_INTERVAL_S, max_interval_s)
        return now_s - last_read.began_s >= interval_s

    async def _read(self, reads: list[_Read]) -> AsyncGenerator[LogBatch, None]:
        """Run the reads in order, and yield their new lines.

        Whenever an edge read is due, it runs before the rest of a longer read, so that new lines are not
        delayed.
        """
        while reads:
            read, reader = reads[0], reads[0].reader
            is_deep = reader.start_ms <= self._settled_ms
            new_entries = self._new_entries(await reader.next_batch())
            if is_deep:
                self._settle_before(min(read.final_ms, reader.unread[0]))
            if self._deduplicator.line_count > MAX_TRACKED_LINES:
                self._settle_before(self._final_before_ms())
            if new_entries:
                yield LogBatch(new_entries, caught_up=True)
            await self._job_poller.poll_when_due()
            is_behind_the_edge = reader.end_ms * NS_PER_MS <= self._newest_delivered_ns
            if new_entries and is_behind_the_edge:
                self._last_late_line_s = self._clock.monotonic()
            # An edge read ends after 5 s even if lines keep arriving; the next poll continues it.
            is_long = self._clock.monotonic() - read.began_s > 5.0
            if reader.is_done and is_deep:
                self._last_deep_read = read
            # If new lines keep arriving, run the next read, which finds late lines, before more new lines.
            if reader.is_done or (is_long and new_entries and not is_behind_the_edge):
                reads.pop(0)
            elif is_behind_the_edge and self._is_edge_due():
                reads.insert(0, self._edge_read())

    def _final_before_ms(self) -> int:
        """Return the time before which no more late lines are expected, in epoch milliseconds.

        A read that begins now settles everything before it. It is at most the newest line's time.
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

    def _settle_before(self, before_ms: int) -> None:
        if before_ms > self._settled_ms:
            self._settled_ms = before_ms
            self._gaps = [gap for gap in self._gaps if gap[1] > before_ms]
        self._deduplicator.forget_before(self._settled_ms)

    def _new_entries(self, entries: list[LogEntry]) -> tuple[LogEntry, ...]:
        """Return the entries not delivered before, in time order, with late lines marked."""
        new_lines = self._deduplicator.new_lines(self._without_gaps(entries))
        newest_ns = self._newest_delivered_ns
        new_entries: list[LogEntry] = [
            line._replace(late=True) if line.timestamp_ns < newest_ns else line for line in new_lines
        ]
        new_entries += [entry for entry in entries if isinstance(entry, LogGap)]
        if new_lines:
            self._record_delivered(new_lines)
        return tuple(sorted(new_entries, key=stamp_ns))

    def _without_gaps(self, entries: Iterable[LogEntry]) -> list[LogLine]:
        """Return the lines of ``entries``. Gaps are recorded, so that their ranges are not read again."""
        gaps = [window_of(entry) for entry in entries if isinstance(entry, LogGap)]
        self._gaps = sorted([*self._gaps, *gaps])
        return [entry for entry in entries if isinstance(entry, LogLine)]

    def _record_delivered(self, new_lines: list[LogLine]) -> None:
        oldest_ns, newest_ns = new_lines[0].timestamp_ns, new_lines[-1].timestamp_ns
        if self._last_deep_read is not None and self._last_deep_read.server_ns is not None:
            self._longest_delay_ns = max(self._longest_delay_ns, self._last_deep_read.server_ns - oldest_ns)
        self._server_time.observe_line(newest_ns)
        self._newest_delivered_ns = max(self._newest_delivered_ns, newest_ns)
        self._last_delivery_s = self._clock.monotonic()
