"""Previews of jobs for Home: progress from the log, findings, recent GPU utilization."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.analysis.connection import ClockOffset
from tui.analysis.cost import is_all_billed
from tui.analysis.fleet.snapshot import NO_PREVIEW, UNREAD, JobPreview
from tui.analysis.node_metrics import mean_known
from tui.analysis.progress.metrics import headline_series
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import even_means
from tui.feeds.throttle import Pause
from tui.readers.session import Session
from tui.readers.watcher import CHECKPOINTS_AGE_S, POLL_EVERY_S, RunWatcher
from tui.settings.runs import DEFAULT, RunSettings

POLL_INTERVAL_S, HIDDEN_INTERVAL_S = 5.0, 15.0
"""Minimum interval between polls of two running jobs; the second while another screen is in front."""
OVERDUE_S = 120.0
"""A job that is overdue for this long is polled regardless of ``POLL_INTERVAL_S``."""

ReadJob: TypeAlias = Callable[[TrainingJob], Awaitable[None]]


class PreviewFeed:
    """Polls running jobs in turn, reads their older lines once, and the end of each ended job's log once.

    Unless ``is_shown`` is set, only the running jobs are polled, a few per minute, so that alerts still come.
    ``on_change`` is called after reading a job whose log had not been read; the results of later polls are
    shown together with the next list of jobs.
    """

    def __init__(
        self,
        session: Session,
        settings: RunSettings = DEFAULT,
        *,
        is_shown: asyncio.Event,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._is_shown = is_shown
        self._on_change = on_change
        self._clock_offset = ClockOffset()
        self._watchers: dict[str, RunWatcher] = {}
        self._due_s: dict[str, float] = {}
        """When to poll each running job next (monotonic), by job ID."""
        self._interval_s: dict[str, float] = {}
        """Polling interval of each running job by ID: shorter for young runs, which change fast."""
        self._polled_s = -math.inf
        """When the last poll of any job began (monotonic)."""
        self._running_jobs: list[TrainingJob] = []
        self._ended_jobs: list[TrainingJob] = []
        self._busy_ids: set[str] = set()
        self._idle_lock = asyncio.Lock()
        self._idle_pause = Pause(session.clock)
        self.previews: dict[str, JobPreview] = {}
        """The previews by job id."""

    def watch(self, running: list[TrainingJob], ended: list[TrainingJob], job_ids: Collection[str]) -> None:
        """Poll the ``running`` jobs, and read the end of the log of each ``ended`` job; stop reading others.

        If a job has just ended, the end of its log is read even if its preview was complete. ``job_ids`` are
        the IDs of all jobs: previews of other jobs, which were deleted, are dropped.
        """
        if (running, ended) != (self._running_jobs, self._ended_jobs):
            self._idle_pause.end()
        self._running_jobs, self._ended_jobs = running, ended
        running_ids = {job.id for job in running}
        watched_ids = running_ids.union(job.id for job in ended)
        self.previews = {
            job_id: replace(preview, reading=True)
            if job_id in self._watchers.keys() - running_ids
            else preview
            for job_id, preview in self.previews.items()
            if job_id in job_ids
        }
        self._watchers = {
            job_id: watcher for job_id, watcher in self._watchers.items() if job_id in watched_ids
        }

    @property
    def is_read(self) -> bool:
        """True once the log of each running job, and the end of each ended job's log, have been read."""
        return not any(map(self._is_unread, (*self._running_jobs, *self._ended_jobs)))

    def _is_unread(self, job: TrainingJob) -> bool:
        return self.previews.get(job.id, UNREAD).reading

    async def run(self) -> None:
        """Read jobs, three at a time and the most urgent first, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(self._read_in_turn())

    async def _read_in_turn(self) -> None:
        while True:
            async with self._idle_lock:  # while there is nothing to read, only one of the tasks polls
                while (next_read := self._next_read()) is None:
                    await self._idle_pause(1.0)
                job, read_job = next_read
                self._busy_ids.add(job.id)
            was_read = not self._is_unread(job)
            pause_s = 1.0  # after an error
            with suppress(RequestError):
                await read_job(job)
                pause_s = 0.02  # lets the event loop handle keys
            self.previews.setdefault(job.id, NO_PREVIEW)  # also if the job cannot be read
            self._busy_ids.discard(job.id)
            if not was_read:
                self._on_change()
                self._idle_pause.end()  # the job's older lines can be read now
            await self._session.clock.sleep(pause_s)

    def _next_read(self) -> tuple[TrainingJob, ReadJob] | None:
        """Return the next job and what to read of it, None if nothing.

        A job due for a poll comes first, then a job with unread older lines, then an ended job.
        """
        now_s = self._session.clock.monotonic()
        free_jobs = [job for job in self._running_jobs if job.id not in self._busy_ids]
        is_shown = self._is_shown.is_set()
        if not is_shown and now_s < self._polled_s + HIDDEN_INTERVAL_S:
            return None
        # The interval does not limit new jobs, nor jobs that became overdue behind another screen.
        is_early = is_shown and now_s < self._polled_s + POLL_INTERVAL_S
        due_until_s = now_s - OVERDUE_S if is_early else now_s
        if due_jobs := [job for job in free_jobs if self._due_time_s(job) <= due_until_s]:
            return max(due_jobs, key=lambda job: self._overdue_intervals(job, now_s)), self.poll
        if not is_shown:
            return None
        if unread_jobs := [
            job for job in free_jobs if job.id in self._watchers and not self._watchers[job.id].log.is_read
        ]:
            return min(unread_jobs, key=self._last_line_ns), self.read_older
        unread_ended_jobs = (
            job for job in self._ended_jobs if self._is_unread(job) and job.id not in self._busy_ids
        )
        return next(((job, self._read_end) for job in unread_ended_jobs), None)

    def _due_time_s(self, job: TrainingJob) -> float:
        return self._due_s[job.id] if job.id in self._watchers else -math.inf

    def _overdue_intervals(self, job: TrainingJob, now_s: float) -> float:
        return (now_s - self._due_time_s(job)) / self._interval_s.get(job.id, POLL_EVERY_S)

    def _last_line_ns(self, job: TrainingJob) -> int:
        progress = self._watchers[job.id].snapshot.progress
        return (progress.last_line_at_ns if progress is not None else None) or 0

    async def read_older(self, job: TrainingJob) -> None:
        """Read the older part of a job's log, then make its next poll due. Raises RequestError."""
        await self._watchers[job.id].log.read_older(self._is_shown)
        self._due_s[job.id] = -math.inf

    def _new_watcher(self, job: TrainingJob) -> RunWatcher:
        # few points per curve: Home draws no charts, but checks the loss
        return RunWatcher(
            self._session.client,
            job,
            self._settings,
            max_points=2000,
            clock_offset=self._clock_offset,
        )

    async def poll(self, job: TrainingJob) -> None:
        """Read the new lines, samples and checkpoints of a running job. Raises RequestError."""
        clock = self._session.clock
        if job.id not in self._watchers:
            self._watchers[job.id] = self._new_watcher(job)
        watcher = self._watchers[job.id]
        self._due_s[job.id] = clock.monotonic() + 5.0  # the next poll if a request fails
        self._polled_s = clock.monotonic()
        watcher.change(job=job, seen_at=clock.now())
        # Behind another screen, nothing else reads older lines, without which a run is not checked.
        read_log = watcher.log.read_newest if self._is_shown.is_set() else watcher.log.read_newest_then_older
        await watcher.poll(read_log, checkpoints_age_s=CHECKPOINTS_AGE_S)
        await watcher.check()
        run, log = watcher.snapshot, watcher.log
        self._interval_s[job.id] = min(max(5.0, run.running_time.seconds / 10), POLL_EVERY_S)
        self._due_s[job.id] = clock.monotonic() + self._interval_s[job.id]
        self.previews[job.id] = JobPreview(
            run.progress,
            mean_known(node.mean_utilization_now for node in watcher.health_metrics.snapshot.nodes),
            run.findings,
            _loss_curve(run.progress, log.is_read),
            log.last_lines,
            log_read=log.is_read,
            idle_s=_idle_s(run),
            reading=not log.is_read,
            at_s=run.at.timestamp(),
        )

    async def _read_end(self, job: TrainingJob) -> None:
        """Read the newest page of an ended job's log: its last step and loss. Raises RequestError."""
        watcher = self._watchers.pop(job.id, None) or self._new_watcher(job)
        watcher.change(job=job)
        preview = replace(self.previews.get(job.id, NO_PREVIEW), reading=False)  # also after an error
        try:
            await watcher.log.read_newest()
            if not is_all_billed(job, watcher.snapshot.at):
                await watcher.read_history()
            progress = watcher.progress.snapshot()
            preview = JobPreview(
                progress,
                curve=_loss_curve(progress, watcher.log.is_read),
                last_lines=watcher.log.last_lines,
                log_read=watcher.log.is_read,
                idle_s=_idle_s(watcher.snapshot),
            )
        finally:
            self.previews[job.id] = preview


def _loss_curve(progress: ProgressSnapshot | None, log_is_read: bool) -> tuple[float | None, ...]:
    return even_means(headline_series(progress)[1], 16) if progress is not None and log_is_read else ()


def _idle_s(run: RunSnapshot) -> float | None:
    """Return the seconds since the job's creation in which it did not run, by its status history."""
    if (created_at := run.job.created_at) is None:
        return None
    end = (run.job.updated_at if run.job.is_finished else None) or run.at
    return (end - created_at).total_seconds() - run.running_time.seconds
