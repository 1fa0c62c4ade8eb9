"""Previews of the running jobs for Home: progress from the log, recent GPU use, last checkpoint."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Container, Iterable
from heapq import nlargest

from api_client.models import JobStatus, TrainingJob
from tui.analysis.connection import ClockOffset
from tui.analysis.fleet.snapshot import JobPreview
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.metrics import headline_series
from tui.analysis.series import even_means
from tui.readers.polled_run import POLL_EVERY_S, LogTail, PolledRun
from tui.readers.session import Session
from tui.readers.watcher import RunWatcher
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.times import time_key

PREVIEW_POINTS = 2000
"""Maximum number of points per curve: Home draws none, but checks the loss."""
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


class PreviewFeed:
    """Polls the running jobs of a list, one after the other."""

    def __init__(self, session: Session, settings: RunSettings = DEFAULT) -> None:
        self._session = session
        self._settings = settings
        self._clock_offset = ClockOffset()
        self._watched: dict[str, PolledRun] = {}
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
        job = min(self.running, key=self._due_at, default=None)
        return job if job is not None and self._due_at(job) <= self._session.clock.monotonic() else None

    def _due_at(self, job: TrainingJob) -> float:
        watched = self._watched.get(job.id)
        return -math.inf if watched is None else watched.due_at

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
        watched.due_at = -math.inf

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
            watched = self._watched[job.id] = PolledRun(watcher)
        watcher, now = watched.watcher, clock.now()
        watched.due_at = clock.monotonic() + FAILED_PREVIEW_AGE_S  # Applies unless every request succeeds.
        watcher.change(job=job, seen_at=now)
        await watched.read()
        watcher.update(at=now, log_read=watched.log.is_read, history_known=True)
        await watcher.check()
        apart_s = max(
            POLL_EVERY_S,
            PREVIEW_INTERVAL_S * len(self.running),
            watched.log.spent_s / PREVIEW_TIME_SHARE,
        )
        watched.due_at = clock.monotonic() + apart_s
        run = watcher.snapshot
        curve: tuple[float | None, ...] = ()
        if run.progress is not None and watched.log.is_read:
            curve = even_means(headline_series(run.progress)[1], CURVE_POINTS)
        use = _trace(watcher.health_metrics.snapshot)
        return JobPreview(
            run.progress, use, run.findings, curve, watched.log.last_lines, log_read=watched.log.is_read
        )

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
