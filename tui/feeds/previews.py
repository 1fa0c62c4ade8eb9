"""Previews of the running jobs for Home: progress from the log, recent GPU use, last checkpoint.

A job's newest log page is read first, the rest in the background. Only the progress found in the lines and
the newest lines are kept; each counts once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Container, Iterable, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from heapq import nlargest
from time import thread_time

from api_client.client import TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer
from api_client.models import JobStatus, TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import NS_PER_MS, LogBatch, LogEntry, LogLine
from api_client.streams.logs import LATENESS_MS, LogIncrements
from tui.analysis.connection import ClockOffset
from tui.analysis.fleet.snapshot import JobPreview
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.series import even_means
from tui.readers.health_metrics import HEALTH_STEP_S
from tui.readers.run import LINES_AT_ONCE
from tui.readers.session import Session
from tui.readers.watcher import RunWatcher
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.sanitize import last_carriage_segment, sanitize, strip_ansi
from tui.text.times import time_key

PREVIEW_POINTS = 2000
"""Maximum number of points per curve: Home draws none, but checks the loss."""
MOST_LINES = 50_000
"""Read at most this many of the newest lines, since Home has many jobs."""
PAUSE_S = 0.05
"""Minimum pause between two pages of the older log, so that the UI stays responsive."""
PAUSE_PER_SPENT = 2.0
"""The pause also grows with the CPU time per page, limiting older logs to a third of a core."""
FLOOD_LINES = 5_000
"""If more lines arrive between two polls, only the newest page is read each time."""
POLL_EVERY_S = 30.0
POLLED_SPAN_S = POLL_EVERY_S + LATENESS_MS / 1000
"""Length of the time range that a poll reads, since late lines may arrive."""
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
        self._floods = False
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._newest: LogIncrements | None = None
        self._newest_seen = self._older_until = job.earliest_time(clock.now())

    async def read_newest(self) -> None:
        """Read the lines that are new since the last poll.

        On the first poll, or if too many lines arrive (``FLOOD_LINES``), read only the newest page.

        Raises RequestError.
        """
        self.spent_s = 0.0
        if self._newest is None:
            self._older_until = await self._read_newest_page()
        elif self._floods:
            await self._read_newest_page()
        else:
            count = 0
            async with aclosing(self._newest.poll()) as polled:
                async for entries in polled:
                    count += await self._take(entries)
                    if count > FLOOD_LINES:
                        self._floods = True
                        break

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
                spent_s = await self._fold(new)
                lines += len(new)
                if new:
                    # If the next page fails for good, another attempt resumes here.
                    self._older_until = min(self._older_until, _moment(new[0]))
                if lines >= (FLOOD_LINES if self._floods else MOST_LINES):
                    break
                await self._clock.sleep(max(PAUSE_S, PAUSE_PER_SPENT * spent_s))
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
        is_full = len(lines) > FULL_PAGE_LINES
        if lines:
            # Lines before the first one are older, unless they are late.
            lateness_ms = 0 if is_full else LATENESS_MS
            start = max(start, _moment(lines[0]) - lateness_ms * MILLISECOND)
        self._newest = self._client.logs.increments(
            self._job.project_id, self._job.id, start=start, known=lines
        )
        await self._take(entries)
        lasted_s = (self._newest_seen - start).total_seconds()
        self._floods = is_full and len(lines) * POLLED_SPAN_S > FLOOD_LINES * lasted_s
        return start

    async def _take(self, entries: Sequence[LogEntry]) -> int:
        """Fold these entries; return the number of lines among them."""
        self.spent_s += await self._fold(entries)
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        if lines:
            # A line from a wrong clock must not hide the later ones of the others.
            newest = min(_moment(lines[-1]), self._clock.now() + CLOCK_SKEW)
            self._newest_seen = max(self._newest_seen, newest + MILLISECOND)
            self._last_lines.extend(excerpt(line.message) for line in lines[-LAST_LINES:])
        return len(lines)

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The newest lines, as text for one row each."""
        texts = (last_carriage_segment(strip_ansi(text)) for text in self._last_lines)
        return tuple(sanitize(text).rstrip() for text in texts)

    async def _fold(self, entries: Sequence[LogEntry]) -> float:
        """Fold a log in slices, yielding to the event loop between them; return the CPU seconds spent."""
        spent_s = 0.0
        for start in range(0, len(entries), LINES_AT_ONCE):
            began_time_s = thread_time()
            self.fold.add(entries[start : start + LINES_AT_ONCE])
            spent_s += thread_time() - began_time_s
            await asyncio.sleep(0)
        return spent_s


def _moment(line: LogLine) -> datetime:
    """Return the beginning of the millisecond of a line."""
    return EPOCH + line.timestamp_ns // NS_PER_MS * MILLISECOND


PREVIEW_MIN_AGE_S = POLL_EVERY_S
"""Minimum polling interval of a job."""
PREVIEW_INTERVAL_S = 2.5
"""Minimum average interval between polls of any two jobs, which limits the rate with many jobs."""
PREVIEW_TIME_SHARE = 1 / 60
"""Maximum share of a core for folding one job's new lines; slower logs are polled less often."""
FAILED_PREVIEW_AGE_S = 5.0
"""Retry interval after a failed poll."""
MAX_PREVIEWED_JOBS = 24
"""Maximum number of running jobs to poll, and of ended ones to read once, the newest first."""
CURVE_POINTS = 16
"""Points of the small curve of a job's loss."""
TRACE_SPAN_S = 1800.0
"""Time range of the GPU utilization curve next to a job."""
CHECKPOINTS_AGE_S = 300.0
"""Minimum interval for listing a job's checkpoints: one additional request in ten polls."""


class _PreviewedJob:
    """State of one job, and when it is to be polled."""

    def __init__(self, watcher: RunWatcher) -> None:
        self.watcher = watcher
        self.log = LogTail(watcher.client, watcher.job, watcher.progress)
        self.due_at: float | None = None
        """The time of the next poll (monotonic); None: at once."""
        self.checkpoints_at: float | None = None
        self.history_of = ""
        """The state of the job whose history was read."""

    async def read(self) -> None:
        """Read what is new. Raises RequestError."""
        await asyncio.gather(
            self.log.read_newest(), self._read_metrics(), self._read_checkpoints(), self._read_history()
        )

    async def _read_metrics(self) -> None:
        """Read the new samples unless the server fails: the log has information too."""
        with suppress(ErrorAnswer, InvalidAnswer):
            await self.watcher.read_health_metrics()
            samples = self.watcher.snapshot.health_metrics
            if samples is not None:
                self.watcher.note_clock(samples, HEALTH_STEP_S)

    async def _read_checkpoints(self) -> None:
        """List the checkpoints from time to time, to notice an overdue one."""
        now = self.watcher.client.clock.monotonic()
        if self.checkpoints_at is None or now - self.checkpoints_at >= CHECKPOINTS_AGE_S:
            with suppress(ErrorAnswer, InvalidAnswer):
                await self.watcher.read_checkpoints()
            self.checkpoints_at = now

    async def _read_history(self) -> None:
        """Read the status history, which shows restarts, whenever the job has changed."""
        job = self.watcher.job
        changed = f"{job.current_status} {job.updated_at}"
        if self.history_of != changed:
            await self.watcher.read_history()
            self.history_of = changed


class PreviewFeed:
    """Polls the running jobs of a list, one after the other."""

    def __init__(self, session: Session, settings: RunSettings = DEFAULT) -> None:
        self._session = session
        self._settings = settings
        self._clock_offset = ClockOffset()
        self._watched: dict[str, _PreviewedJob] = {}
        self.running: list[TrainingJob] = []
        """The jobs that are polled."""

    def watch(self, jobs: Iterable[TrainingJob]) -> None:
        """Poll the running jobs among these from now on, and drop the data of all others."""
        running = [job for job in jobs if job.current_status == JobStatus.RUNNING]
        running.sort(key=lambda job: time_key(job.created_at), reverse=True)
        self.running = running[:MAX_PREVIEWED_JOBS]
        running_ids = {job.id for job in running}
        self._watched = {
            job_id: preview for job_id, preview in self._watched.items() if job_id in running_ids
        }

    def next_ended(self, jobs: Iterable[TrainingJob], known: Container[str]) -> TrainingJob | None:
        """Return the newest of the ended jobs to read that is not ``known`` by its id."""
        ended = (job for job in jobs if job.is_finished and job.current_status != JobStatus.DEPLOY_FAILED)
        newest = nlargest(MAX_PREVIEWED_JOBS, ended, key=lambda job: time_key(job.created_at))
        return next((job for job in newest if job.id not in known), None)

    def next_due(self) -> TrainingJob | None:
        """Return the running job whose poll has been due longest; None if none is due."""
        now = self._session.clock.monotonic()
        chosen: TrainingJob | None = None
        longest_s = 0.0
        for job in self.running:
            watched = self._watched.get(job.id)
            if watched is None or watched.due_at is None:
                return job
            waited_s = now - watched.due_at
            if waited_s >= longest_s:
                chosen, longest_s = job, waited_s
        return chosen

    def next_unread(self) -> TrainingJob | None:
        """Return the next job whose older log to read, at first those silent longest: they may be stalled."""
        newest_ns = {
            job.id: progress.last_line_at_ns or 0
            for job in self.running
            if (watched := self._watched.get(job.id)) is not None
            and (progress := watched.watcher.snapshot.progress) is not None
            and not watched.log.is_read
        }
        unread = [job for job in self.running if job.id in newest_ns]
        return min(unread, key=lambda job: newest_ns[job.id], default=None)

    async def read_older(self, job: TrainingJob, resume: asyncio.Event) -> None:
        """Read the older part of a job's log, then make its next poll due. Raises RequestError."""
        watched = self._watched[job.id]
        await watched.log.read_older(resume)
        watched.due_at = None

    async def preview(self, job: TrainingJob) -> JobPreview:
        """Read what is new of a running job. Raises RequestError."""
        clock = self._session.clock
        watched = self._watched.get(job.id)
        if watched is None:
            watcher = RunWatcher(
                self._session.client,
                job,
                self._settings,
                max_points=PREVIEW_POINTS,
                clock_offset=self._clock_offset,
            )
            watched = self._watched[job.id] = _PreviewedJob(watcher)
        watcher, now = watched.watcher, clock.now()
        watched.due_at = clock.monotonic() + FAILED_PREVIEW_AGE_S  # Applies unless every request succeeds.
        watcher.change(job=job, seen_at=now)
        await watched.read()
        watcher.update(at=now, log_read=watched.log.is_read, history_known=True)
        await watcher.check()
        apart_s = max(
            PREVIEW_MIN_AGE_S,
            PREVIEW_INTERVAL_S * len(self.running),
            watched.log.spent_s / PREVIEW_TIME_SHARE,
        )
        watched.due_at = clock.monotonic() + apart_s
        run = watcher.snapshot
        losses = run.progress.loss_series if run.progress is not None and watched.log.is_read else None
        curve = even_means(losses, CURVE_POINTS) if losses is not None else ()
        use = _trace(watcher.health_metrics.snapshot)
        return JobPreview(run.progress, use, run.findings, curve, watched.log.last_lines)

    async def end_of(self, job: TrainingJob) -> JobPreview:
        """Read the newest page of an ended job's log: its last step and loss. Raises RequestError."""
        watcher = RunWatcher(self._session.client, job, self._settings, max_points=PREVIEW_POINTS)
        log = LogTail(watcher.client, job, watcher.progress)
        await log.read_newest()
        return JobPreview(log.fold.snapshot(), last_lines=log.last_lines)


def _trace(metrics: MetricsSnapshot) -> tuple[float | None, ...]:
    """Return the mean GPU utilization over all nodes, one value per step; empty for CPU-only jobs."""
    since = (metrics.at or 0.0) - TRACE_SPAN_S
    recent = []
    for node in metrics.nodes:
        series = node.mean_utilization
        values = [value for time, value in zip(series.times, series.values, strict=True) if time >= since]
        if values:
            recent.append(values)
    length = min(map(len, recent), default=0)
    return tuple(
        sum(values[position - length] for values in recent) / len(recent) for position in range(length)
    )
