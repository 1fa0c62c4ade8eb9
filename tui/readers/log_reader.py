"""Poll a run's log and fold it into the run's progress: in order, or the newest page first.

Each line is folded once. Only the newest few lines are retained.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

from api_client.client import TrainingClient
from api_client.clock import EPOCH
from api_client.models import TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import NS_PER_MS, NS_PER_S, LogBatch, LogEntry, LogLine, stamp_ns
from api_client.streams.logs import LATENESS_MS, LogIncrements
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.progress.fold import ProgressFold
from tui.text.sanitize import last_carriage_segment, sanitize, strip_ansi

LINES_PER_SLICE = 250
"""Lines folded per event-loop iteration (a few ms); handling one key takes several iterations."""
FLOOD_LINES = 2_000
"""``read_newest`` skips to the newest page if more lines than this arrived since the last poll."""
NEWEST_LINES = 8
"""Number of newest lines to retain."""
MILLISECOND = timedelta(milliseconds=1)

OnLogProgress = Callable[[float | None, int], object]
"""Called with the fraction of the log read (0–1, None if unknown) and the number of lines."""


class LogReader:
    """Folds a job's log from ``start`` (default: its beginning). Every ``read_…`` raises RequestError.

    Use it in one of these ways: call ``read_whole`` once; ``read_new`` on every poll; or ``read_newest`` on
    every poll, and ``read_older`` until ``is_read``.
    """

    def __init__(
        self,
        client: TrainingClient,
        job: TrainingJob,
        fold: ProgressFold,
        *,
        start: datetime | None = None,
        on_log_progress: OnLogProgress = lambda _fraction, _line_count: None,
    ) -> None:
        self.fold = fold
        self.is_read = False
        self.line_count = self.gap_count = 0
        self.newest: list[LogLine] = []
        """The newest lines by time, each shortened by ``excerpt``."""
        self._client = client
        self._job = job
        self._start = self._older_until = start or job.earliest_time(client.clock.now())
        self._on_log_progress = on_log_progress
        self._increments: LogIncrements | None = None

    async def read_whole(self, max_lines: int | None = None) -> None:
        """Read the log up to now; stop early if it has more than ``max_lines``."""
        async with aclosing(self._history(self._start, newest_first=False)) as batches:
            async for batch in batches:
                await self._fold_entries(batch.entries, batch.read_part)
                if max_lines is not None and self.line_count > max_lines:
                    return
        self.is_read = True

    async def read_new(self) -> None:
        """Read the lines since the last poll; the first call reads the whole log."""
        if self._increments is None:
            self._increments = self._increments_from(self._start)
        begin_s = self._start.timestamp()
        span_s = max(self._client.clock.now().timestamp() - begin_s, 1.0)
        async with aclosing(self._increments.poll()) as increments:
            async for entries in increments:
                reached_s = stamp_ns(entries[-1]) / NS_PER_S if entries else begin_s + span_s
                fraction = min(max((reached_s - begin_s) / span_s, 0.0), 1.0)
                await self._fold_entries(entries, fraction)
        self.is_read = True

    async def read_newest(self) -> None:
        """Read the lines since the last poll; only the newest page at first, or if too many lines arrived."""
        if self._increments is None:
            self._older_until = await self._read_newest_page(self._start)
            return
        count_before = self.line_count
        async with aclosing(self._increments.poll()) as increments:
            async for entries in increments:
                await self._fold_entries(entries)
                if self.line_count - count_before > FLOOD_LINES:
                    # If the clock of a node is ahead, its newest line must not hide lines of other nodes.
                    newest_time = min(_time_of(self.newest[-1]), self._client.clock.now() + CLOCK_SKEW)
                    await self._read_newest_page(newest_time + MILLISECOND)
                    return

    async def read_older(self, may_continue: asyncio.Event | None = None) -> None:
        """Read the lines older than the newest page, newest first; beyond a limit, the log counts as read.

        Return early if ``may_continue`` is not set.
        """
        if self._increments is None or self.is_read:
            return
        count_before = self.line_count
        async with aclosing(self._history(self._start, self._older_until)) as batches:
            async for batch in batches:
                await self._fold_entries(batch.entries, batch.read_part)
                if batch.entries:
                    # The next call resumes here.
                    self._older_until = min(self._older_until, _time_of(batch.entries[0]))
                # Home and guards read the logs of many jobs, so the older lines of each are limited.
                if self.line_count - count_before >= 50_000:
                    break
                if may_continue is not None and not may_continue.is_set():
                    return
        self.is_read = True

    async def read_newest_then_older(self) -> None:
        """Read the newest lines, and the older lines unless they have been read."""
        await self.read_newest()
        await self.read_older()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The newest lines, sanitized; of a line redrawn with carriage returns, the last version."""
        texts = (last_carriage_segment(strip_ansi(line.message)) for line in self.newest)
        return tuple(sanitize(text).rstrip() for text in texts)

    def _history(
        self, start: datetime, end: datetime | None = None, *, newest_first: bool = True
    ) -> AsyncGenerator[LogBatch, None]:
        return self._client.logs.history(
            self._job.project_id, self._job.id, start=start, end=end, newest_first=newest_first
        )

    def _increments_from(self, start: datetime, known_lines: Sequence[LogLine] = ()) -> LogIncrements:
        return self._client.logs.increments(
            self._job.project_id, self._job.id, start=start, known=known_lines
        )

    async def _read_newest_page(self, start: datetime) -> datetime:
        """Read the newest page since ``start``; return the time since which no line is missing."""
        async with aclosing(self._history(start)) as batches:
            entries = (await anext(batches, LogBatch((), caught_up=False))).entries
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        if lines:
            # Lines older than the first line may still arrive late. But a batch of more than 500 lines is the
            # newest page of a longer log, whose earlier lines are read separately.
            lateness_ms = 0 if len(lines) > 500 else LATENESS_MS
            start = max(start, _time_of(lines[0]) - lateness_ms * MILLISECOND)
        self._increments = self._increments_from(start, lines)
        await self._fold_entries(entries)
        return start

    async def _fold_entries(self, entries: Sequence[LogEntry], fraction: float | None = None) -> None:
        await fold_in_slices(self.fold.add, entries)
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        self.line_count += len(lines)
        self.gap_count += len(entries) - len(lines)
        new_lines = [line._replace(message=excerpt(line.message)) for line in lines[-NEWEST_LINES:]]
        self.newest = sorted([*self.newest, *new_lines], key=stamp_ns)[-NEWEST_LINES:]
        self._on_log_progress(fraction, self.line_count)


async def fold_in_slices(fold: Callable[[Sequence[LogEntry]], object], entries: Sequence[LogEntry]) -> None:
    """Fold log entries in slices; between them, the event loop can handle keys and repaints."""
    for start in range(0, len(entries), LINES_PER_SLICE):
        fold(entries[start : start + LINES_PER_SLICE])
        await asyncio.sleep(0)


def _time_of(entry: LogEntry) -> datetime:
    """Return an entry's time, rounded down to a millisecond."""
    return EPOCH + stamp_ns(entry) // NS_PER_MS * MILLISECOND
