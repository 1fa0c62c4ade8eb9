"""Previews of the running jobs for Home: progress from the log, recent GPU use, last checkpoint."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from heapq import nlargest
from typing import TypeAlias

from api_client.errors import RequestError
from api_client.models import JobStatus, TrainingJob
from tui.analysis.billing import is_all_billed
from tui.analysis.connection import ClockOffset
from tui.analysis.fleet.snapshot import NO_PREVIEW, JobPreview
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.metrics import headline_series
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import even_means
from tui.readers.session import Session
from tui.readers.watcher import CHECKPOINTS_AGE_S, POLL_EVERY_S, RunWatcher
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.times import time_key

MAX_PREVIEWED_JOBS = 24
"""Maximum number of running jobs to poll, and of ended ones to read once, the newest first."""

Read: TypeAlias = Callable[[TrainingJob], Awaitable[None]]


class PreviewFeed:
    """Polls the running jobs of a list in turn, then reads their older logs and the ends of ended jobs once.

    Nothing is read unless ``is_shown`` is set, and with ``only`` no job with another id. ``on_change`` is
    called after a read of a job whose log is not read yet; what later polls find is shown when the list is.
    """

    def __init__(
        self,
        session: Session,
        settings: RunSettings = DEFAULT,
        *,
        is_shown: asyncio.Event,
        on_change: Callable[[], object] = lambda: None,
        only: Collection[str] | None = None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._is_shown = is_shown
        self._on_change = on_change
        self._only = only
        self._clock_offset = ClockOffset()
        self._runs: dict[str, RunWatcher] = {}
        self._due_s: dict[str, float] = {}
        """When to poll each of them next (monotonic)."""
        self._next_poll_s = -math.inf
        self._running: list[TrainingJob] = []
        self._ended: list[TrainingJob] = []
        self._busy: set[str] = set()
        self._waiting = asyncio.Lock()
        self.previews: dict[str, JobPreview] = {}
        """The previews by job id."""

    def watch(self, jobs: Iterable[TrainingJob]) -> None:
        """Poll the running jobs among these from now on, and drop the logs of all others."""
        running = [job for job in jobs if job.current_status == JobStatus.RUNNING and self._is_wanted(job)]
        running.sort(key=lambda job: time_key(job.created_at), reverse=True)
        self._running = running[:MAX_PREVIEWED_JOBS]
        running_ids = {job.id for job in running}
        self._runs = {job_id: run for job_id, run in self._runs.items() if job_id in running_ids}

    def watch_all(self, jobs: Mapping[str, TrainingJob]) -> None:
        """Read the ends of the newest ended jobs among all jobs, and drop the previews of deleted ones."""
        ended = (
            job
            for job in jobs.values()
            if job.is_finished and job.current_status != JobStatus.DEPLOY_FAILED and self._is_wanted(job)
        )
        self._ended = nlargest(MAX_PREVIEWED_JOBS, ended, key=lambda job: time_key(job.created_at))
        for gone in self.previews.keys() - jobs.keys():
            del self.previews[gone]

    def _is_wanted(self, job: TrainingJob) -> bool:
        return self._only is None or job.id in self._only

    @property
    def is_read(self) -> bool:
        """True once the whole log of each job that is polled has been read, and the end of each ended one."""
        running = (self.previews.get(job.id, NO_PREVIEW).log_read for job in self._running)
        ended = (job.id in self.previews and job.id not in self._busy for job in self._ended)
        return all(running) and all(ended)

    async def run(self) -> None:
        """Read what is most urgent, again and again, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(self._read_in_turn())

    async def _read_in_turn(self) -> None:
        while True:
            async with self._waiting:  # one of them wakes up while there is nothing to read, not all
                await self._is_shown.wait()
                while (upcoming := self._next()) is None:
                    await self._session.clock.sleep(1.0)
                    await self._is_shown.wait()
                job, read = upcoming
                self._busy.add(job.id)
            was_read = self.previews.get(job.id, NO_PREVIEW).log_read
            pause_s = 1.0  # after an error
            with suppress(RequestError):
                await read(job)
                pause_s = 0.02  # leaves time for keys
            self._busy.discard(job.id)
            if not was_read:
                self._on_change()
            await self._session.clock.sleep(pause_s)

    def _next(self) -> tuple[TrainingJob, Read] | None:
        """Return what to read: of the job due longest, of the one silent longest, or of an ended one."""
        now_s = self._session.clock.monotonic()
        free = [job for job in self._running if job.id not in self._busy]
        until_s = now_s if now_s >= self._next_poll_s else -math.inf
        if due := [job for job in free if self._due_at(job) <= until_s]:
            return min(due, key=self._due_at), self.poll
        if unread := [job for job in free if job.id in self._runs and not self._runs[job.id].log.is_read]:
            return min(unread, key=self._last_line_ns), self.read_older
        unknown = (job for job in self._ended if job.id not in self.previews)
        return next(((job, self._read_end) for job in unknown), None)

    def _due_at(self, job: TrainingJob) -> float:
        return self._due_s[job.id] if job.id in self._runs else -math.inf

    def _last_line_ns(self, job: TrainingJob) -> int:
        progress = self._runs[job.id].snapshot.progress
        return (progress.last_line_at_ns if progress is not None else None) or 0

    async def read_older(self, job: TrainingJob) -> None:
        """Read the older part of a job's log, then make its next poll due. Raises RequestError."""
        await self._runs[job.id].log.read_older(self._is_shown)
        self._due_s[job.id] = -math.inf

    def _watcher(self, job: TrainingJob) -> RunWatcher:
        # few points per curve: Home draws none, but checks the loss
        return RunWatcher(
            self._session.client,
            job,
            self._settings,
            max_points=2000,
            clock_offset=self._clock_offset,
        )

    async def poll(self, job: TrainingJob) -> None:
        """Read what is new of a running job. Raises RequestError."""
        clock = self._session.clock
        if job.id not in self._runs:
            self._runs[job.id] = self._watcher(job)
        watcher = self._runs[job.id]
        self._due_s[job.id] = clock.monotonic() + 5.0  # unless every request succeeds
        # limits the rate of polls of all jobs that were polled before
        self._next_poll_s = clock.monotonic() + 5.0
        watcher.change(job=job, seen_at=clock.now())
        await watcher.poll(watcher.log.read_newest, checkpoints_age_s=CHECKPOINTS_AGE_S)
        await watcher.check()
        self._due_s[job.id] = clock.monotonic() + POLL_EVERY_S
        run, log = watcher.snapshot, watcher.log
        curve: tuple[float | None, ...] = ()
        if run.progress is not None and log.is_read:
            curve = even_means(headline_series(run.progress)[1], 16)
        self.previews[job.id] = JobPreview(
            run.progress,
            _trace(watcher.health_metrics.snapshot),
            run.findings,
            curve,
            log.last_lines,
            log_read=log.is_read,
            idle_s=_idle_s(run),
        )

    async def _read_end(self, job: TrainingJob) -> None:
        """Read the newest page of an ended job's log: its last step and loss. Raises RequestError."""
        self.previews[job.id] = NO_PREVIEW  # also if it cannot be read
        watcher = self._watcher(job)
        await watcher.log.read_newest()
        if not is_all_billed(job, watcher.snapshot.at):
            await watcher.read_history()
        self.previews[job.id] = JobPreview(
            watcher.progress.snapshot(),
            last_lines=watcher.log.last_lines,
            idle_s=_idle_s(watcher.snapshot),
        )


def _idle_s(run: RunSnapshot) -> float | None:
    """Return how long a job has not run since its creation; None without its status history."""
    ran, created = run.running_time, run.job.created_at
    if created is None or not ran.measured:
        return None
    end = (run.job.updated_at if run.job.is_finished else None) or run.at
    return (end - created).total_seconds() - ran.seconds


def _trace(metrics: MetricsSnapshot) -> tuple[float | None, ...]:
    """Return the mean GPU utilization over all nodes, one value per step; empty for CPU-only jobs."""
    since = (metrics.at or 0.0) - 1800.0
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
