"""Looks at running jobs for Home: how far each is, how busy its GPUs are, what is wrong with it.

What a look finds is what the job screen and ``bt-tui health`` find: they read the same and judge by the same
rules. Each job's log is read once through in the background and then on from there; metrics come as
increments. So a look is two requests, and one more once in a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from api_client.errors import ErrorAnswer, InvalidAnswer
from api_client.models import Checkpoint, JobStatus, QueueContext, TrainingJob
from tui.feeds.glance_log import LOOK_EVERY_S, GlanceLog
from tui.feeds.run_reading import checkpoints_of, history_of
from tui.feeds.session import Session
from tui.feeds.vitals import VITALS_SPAN, VITALS_STEP_S, read_earlier, read_recent, vitals_fold
from tui.insight.clock_offset import ClockOffset
from tui.insight.fleet.snapshot import Glance
from tui.insight.health.judging import health, without_stalls
from tui.insight.health.rules import DEFAULT_RULES, HealthRules
from tui.insight.nodes.metrics import MetricsFold, MetricsSnapshot
from tui.insight.progress.fold import ProgressPattern
from tui.insight.run.finding import FindingKind
from tui.insight.run.snapshot import RunSnapshot

GLANCE_MIN_AGE_S = LOOK_EVERY_S
"""No job is looked at more often …"""
GLANCE_APART_S = 2.5
"""… and where many run, the less often: so far are the looks apart, on average …"""
GLANCE_SHARE = 1 / 60
"""… and where reading a job's new lines has taken long: the looks at one job get so much of a core."""
FAILED_GLANCE_AGE_S = 5.0
"""… but where a look has failed."""
GLANCED_JOBS = 24
"""At most so many running jobs are looked at, the newest first."""
TRACE_SPAN_S = 1800.0
"""The curve of GPU use beside a job shows so much."""
INCREMENT = timedelta(minutes=5)
"""Samples may be late: every look asks for so much that is known already."""
CHECKPOINTS_AGE_S = 300.0
"""A job's checkpoints are listed no more often: one request more in ten looks."""


@dataclass(slots=True)
class _Watched:
    """What is known of one running job."""

    log: GlanceLog
    metrics: MetricsFold
    metrics_at: datetime | None = None
    """When they were last answered."""
    has_earlier: bool = False
    due_at: float | None = None
    """When it is to be looked at next (monotonic); None: at once."""
    checkpoints: tuple[Checkpoint, ...] | None = None
    checkpoints_at: float | None = None
    queue: QueueContext | None = None
    queue_of: str | None = None
    may_stall: bool = False
    glance: Glance = field(default_factory=Glance)


class Glancer:
    """Looks at the running jobs of a list, one after the other."""

    def __init__(
        self,
        session: Session,
        *,
        rules: HealthRules = DEFAULT_RULES,
        patterns: Sequence[ProgressPattern] = (),
    ) -> None:
        self._session = session
        self._rules = rules
        self._patterns = tuple(patterns)
        self._offset = ClockOffset()
        self._watched: dict[str, _Watched] = {}
        self._running: list[TrainingJob] = []

    def watch(self, jobs: Iterable[TrainingJob]) -> None:
        """Look at the running ones of these jobs from now on, and let go of what was known of others."""
        running = [job for job in jobs if job.current_status == JobStatus.RUNNING]
        running.sort(key=lambda job: job.created_at.timestamp() if job.created_at else 0.0, reverse=True)
        self._running = running[:GLANCED_JOBS]
        kept = {job.id for job in running}
        self._watched = {job_id: known for job_id, known in self._watched.items() if job_id in kept}

    def next_due(self) -> TrainingJob | None:
        """The running job that has waited longest for a look; None while none is due."""
        now = self._session.clock.monotonic()
        chosen: TrainingJob | None = None
        longest_s = 0.0
        for job in self._running:
            watched = self._watched.get(job.id)
            if watched is None or watched.due_at is None:
                return job
            waited_s = now - watched.due_at
            if waited_s >= longest_s:
                chosen, longest_s = job, waited_s
        return chosen

    def next_unread(self) -> TrainingJob | None:
        """The job whose older log is to be read next: first one that may have stalled, by what is known."""
        unread = [
            job
            for job in self._running
            if (watched := self._watched.get(job.id)) is not None
            and watched.glance.progress is not None
            and not watched.log.is_read
        ]
        return min(unread, key=lambda job: not self._watched[job.id].may_stall, default=None)

    async def read_older(self, job: TrainingJob, resume: asyncio.Event) -> None:
        """Read the older part of a job's log, and have it looked at again. Raises RequestError."""
        watched = self._watched[job.id]
        await watched.log.read_older(resume)
        watched.due_at = None

    async def look(self, job: TrainingJob) -> Glance:
        """Look at a job. Raises RequestError."""
        client, clock = self._session.client, self._session.clock
        watched = self._watched.get(job.id)
        if watched is None:
            log = GlanceLog(client, clock, job, self._patterns)
            watched = self._watched[job.id] = _Watched(log, vitals_fold(job))
        now = clock.now()
        watched.due_at = clock.monotonic() + FAILED_GLANCE_AGE_S  # unless all of it succeeds
        _, metrics, _, _ = await asyncio.gather(
            watched.log.read_newest(),
            self._read_metrics(watched, job),
            self._read_checkpoints(watched, job),
            self._read_queue(watched, job),
        )
        if metrics.at is not None:
            self._offset.saw(metrics.at, now.timestamp(), VITALS_STEP_S)
        run = RunSnapshot(
            job,
            now,
            now,
            progress=watched.log.fold.snapshot(),
            vitals=metrics,
            vitals_at=watched.metrics_at,
            checkpoints=watched.checkpoints,
            queue=watched.queue,
            history_known=True,
            log_read=watched.log.is_read,
            clock_ahead_s=self._offset.ahead_s,
        )
        found = await asyncio.to_thread(health, run, self._rules, watched.glance.findings)
        watched.may_stall = any(one.kind == FindingKind.STALLED for one in found)
        if not watched.log.is_read:
            found = without_stalls(found)
        apart_s = max(
            GLANCE_MIN_AGE_S, GLANCE_APART_S * len(self._running), watched.log.spent_s / GLANCE_SHARE
        )
        watched.due_at = clock.monotonic() + apart_s
        watched.glance = Glance(run.progress, _trace(metrics), found)
        return watched.glance

    async def _read_metrics(self, watched: _Watched, job: TrainingJob) -> MetricsSnapshot:
        """The samples that are known, with the new ones unless the server fails: the log tells too."""
        with suppress(ErrorAnswer, InvalidAnswer):
            await self._read_new_metrics(watched, job)
            watched.metrics_at = self._session.clock.now()
        return watched.metrics.snapshot

    async def _read_new_metrics(self, watched: _Watched, job: TrainingJob) -> None:
        """The last hour and what was before it; then what is new."""
        client, now = self._session.client, self._session.clock.now()
        if not watched.has_earlier:
            earlier = await read_earlier(client, job, now)
            if earlier is not None:
                await asyncio.to_thread(watched.metrics.fold, earlier)
            watched.has_earlier = True
            recent = await read_recent(client, job, now)
        else:
            newest = watched.metrics.snapshot.at
            silent = timedelta(seconds=max(0.0, now.timestamp() - newest)) if newest is not None else None
            recent = await read_recent(
                client, job, now, VITALS_SPAN if silent is None else silent + INCREMENT
            )
        await asyncio.to_thread(watched.metrics.fold, recent)

    async def _read_checkpoints(self, watched: _Watched, job: TrainingJob) -> None:
        """Listed anew once in a while: to see one that is overdue."""
        now = self._session.clock.monotonic()
        if watched.checkpoints_at is None or now - watched.checkpoints_at >= CHECKPOINTS_AGE_S:
            with suppress(ErrorAnswer):
                watched.checkpoints = await checkpoints_of(self._session.client, job)
            watched.checkpoints_at = now

    async def _read_queue(self, watched: _Watched, job: TrainingJob) -> None:
        """The history of statuses tells of restarts: asked for again when the job has changed."""
        changed = f"{job.current_status} {job.updated_at}"
        if watched.queue_of != changed:
            watched.queue = await history_of(self._session.client, job)
            watched.queue_of = changed


def _trace(metrics: MetricsSnapshot) -> tuple[float | None, ...]:
    """Mean GPU use over all nodes in the last while, a value a step; CPU-only jobs have none."""
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
