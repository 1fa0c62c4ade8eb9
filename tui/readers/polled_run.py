"""One run, watched from time to time: each poll reads what is new of its log, metrics and checkpoints.

The newest page of the log is read first, the rest in the background. Only the progress found in the lines and
the newest lines are kept; each counts once.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from operator import itemgetter

from api_client.client import TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer
from api_client.models import TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import NS_PER_MS, LogBatch, LogEntry, LogLine
from api_client.streams.logs import LATENESS_MS, LogIncrements
from tui.analysis.connection import CHECKPOINTS, METRICS
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.progress.fold import ProgressFold
from tui.readers.health_metrics import HEALTH_STEP_S
from tui.readers.run import fold_in_slices, together
from tui.readers.watcher import RunWatcher
from tui.text.sanitize import last_carriage_segment, sanitize, strip_ansi

MOST_LINES = 50_000
"""Read at most this many of the newest lines, since Home has many jobs."""
FLOOD_LINES = 5_000
"""If more lines than this arrived since the last poll, skip to the newest page."""
POLL_EVERY_S = 30.0
LAST_LINES = 8
"""The newest lines of a log that Home can show."""
FULL_PAGE_LINES = 500
"""A first batch with more lines than this is a page of a longer log."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class LogTail:
    """Folds a job's log: ``read_newest`` on every poll, ``read_older`` once."""

    def __init__(self, client: TrainingClient, job: TrainingJob, fold: ProgressFold) -> None:
        self.fold = fold
        self.is_read = False
        self.spent_s = 0.0
        """CPU time spent on folding in the last ``read_newest``."""
        self._client = client
        self._clock = clock = client.clock
        self._job = job
        self._last_lines: list[tuple[int, str]] = []
        self._newest: LogIncrements | None = None
        self._newest_seen = self._older_until = job.earliest_time(clock.now())

    async def read_newest(self) -> None:
        """Read the lines that are new since the last poll.

        On the first poll, or if too many lines arrived (``FLOOD_LINES``), read only the newest page.

        Raises RequestError.
        """
        self.spent_s = 0.0
        if self._newest is None:
            self._older_until = await self._read_newest_page()
            return
        count = 0
        async with aclosing(self._newest.poll()) as polled:
            async for entries in polled:
                count += await self._take(entries)
                if count > FLOOD_LINES:
                    await self._read_newest_page()
                    return

    async def read_older(self, resume: asyncio.Event) -> None:
        """Read the lines before the first page, newest first; pauses while ``resume`` is not set.

        Raises RequestError.
        """
        if self._newest is None or self.is_read:
            return
        start, lines = self._job.earliest_time(self._clock.now()), 0
        async with aclosing(self._history(start, self._older_until)) as batches:
            async for batch in batches:
                new = [line for line in batch.entries if isinstance(line, LogLine)]
                await fold_in_slices(self.fold, new)
                lines += len(new)
                if new:
                    # If the next page fails for good, another attempt resumes here.
                    self._older_until = min(self._older_until, _moment(new[0]))
                if lines >= MOST_LINES:
                    break
                await resume.wait()
        self.is_read = True

    def _history(self, start: datetime, end: datetime | None = None) -> AsyncGenerator[LogBatch, None]:
        return self._client.logs.history(
            self._job.project_id, self._job.id, start=start, end=end, newest_first=True
        )

    async def _read_newest_page(self) -> datetime:
        """Read the newest page of the lines not seen yet; return the time from which on it has all lines."""
        start = self._newest_seen
        async with aclosing(self._history(start)) as batches:
            entries = (await anext(batches, LogBatch((), caught_up=False))).entries
        lines = [line for line in entries if isinstance(line, LogLine)]
        if lines:
            # Lines before the first one are older, unless they are late.
            lateness_ms = 0 if len(lines) > FULL_PAGE_LINES else LATENESS_MS
            start = max(start, _moment(lines[0]) - lateness_ms * MILLISECOND)
        self._newest = self._client.logs.increments(
            self._job.project_id, self._job.id, start=start, known=lines
        )
        await self._take(entries)
        return start

    async def _take(self, entries: Sequence[LogEntry]) -> int:
        """Fold these entries; return the number of lines among them."""
        self.spent_s += await fold_in_slices(self.fold, entries)
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        if lines:
            # A line from a wrong clock must not hide the later ones of the others.
            newest = min(_moment(lines[-1]), self._clock.now() + CLOCK_SKEW)
            self._newest_seen = max(self._newest_seen, newest + MILLISECOND)
            last = [(line.timestamp_ns, excerpt(line.message)) for line in lines[-LAST_LINES:]]
            self._last_lines = sorted([*self._last_lines, *last], key=itemgetter(0))[-LAST_LINES:]
        return len(lines)

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The newest lines, as text for one row each."""
        texts = (last_carriage_segment(strip_ansi(text)) for _, text in self._last_lines)
        return tuple(sanitize(text).rstrip() for text in texts)


def _moment(line: LogLine) -> datetime:
    """Return the beginning of the millisecond of a line."""
    return EPOCH + line.timestamp_ns // NS_PER_MS * MILLISECOND


CHECKPOINTS_AGE_S = 300.0
"""Minimum interval for listing a job's checkpoints: one additional request in ten polls."""


class PolledRun:
    """A run that is polled every half minute or so.

    The snapshot's ``failing`` names what the last poll could not read; only without the status or the log
    it fails as a whole.
    """

    def __init__(self, watcher: RunWatcher, *, checkpoints_age_s: float = CHECKPOINTS_AGE_S) -> None:
        self.watcher = watcher
        self.log = LogTail(watcher.client, watcher.job, watcher.progress)
        self.due_at = -math.inf
        """The time of the next poll (monotonic)."""
        self._checkpoints_due_at = -math.inf
        self._checkpoints_age_s = checkpoints_age_s
        self._history_of = ""
        """The state of the job whose history was read."""

    async def read(self) -> None:
        """Read what is new. Raises RequestError."""
        await together(
            self.log.read_newest(), self._read_metrics(), self._read_checkpoints(), self._read_history()
        )

    async def _read_metrics(self) -> None:
        """Read the new samples unless the server fails: the log has information too."""
        with self._noting(METRICS):
            await self.watcher.read_health_metrics()
            samples = self.watcher.snapshot.health_metrics
            if samples is not None:
                self.watcher.note_clock(samples, HEALTH_STEP_S)

    async def _read_checkpoints(self) -> None:
        """List the checkpoints from time to time, to notice an overdue one."""
        now = self.watcher.client.clock.monotonic()
        if now >= self._checkpoints_due_at:
            with self._noting(CHECKPOINTS):
                await self.watcher.read_checkpoints()
            self._checkpoints_due_at = now + self._checkpoints_age_s

    async def _read_history(self) -> None:
        """Read the status history, which shows restarts, whenever the job has changed."""
        job = self.watcher.job
        changed = f"{job.current_status} {job.updated_at}"
        if self._history_of != changed:
            await self.watcher.read_history()
            self._history_of = changed

    @contextmanager
    def _noting(self, part: str) -> Iterator[None]:
        """Note if the server fails to answer for this part."""
        failing = {part}
        with suppress(ErrorAnswer, InvalidAnswer):
            yield
            failing.clear()
        self.watcher.change(failing=(self.watcher.snapshot.failing - {part}) | failing)
