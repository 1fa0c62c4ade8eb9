"""Home's feed: lists of projects and jobs, and a quick look at each running job in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from api_client.errors import NotFound, RequestError, Unauthorized
from api_client.models import (
    RUNNABLE_STATUSES,
    Checkpoint,
    JobStatus,
    LogRecord,
    TrainingJob,
    TrainingProject,
)
from api_client.streams.records import LogLine
from tui.feeds.publisher import Publisher
from tui.feeds.run_reading import listed_prices
from tui.feeds.session import Session
from tui.insight.clock_offset import ClockOffset
from tui.insight.fleet import FleetSnapshot, Glance, fold_fleet
from tui.insight.health import DEFAULT_RULES, HealthRules, health
from tui.insight.node_metrics import MetricsFold, MetricsSnapshot
from tui.insight.progress import ProgressFold, ProgressPattern
from tui.insight.run import RunSnapshot

LIST_INTERVAL_S = 5.0
"""How often the lists are asked for."""
FULL_LIST_EVERY = 6
"""With many jobs, only the unfinished ones are asked for in between."""
FEW_JOBS = 300
"""Up to so many jobs, everything is asked for every time."""
UNAUTHORISED_INTERVAL_S = 30.0
UNWATCHED_INTERVAL_S = 10.0
"""While another screen is in front; nothing is glanced at then, but the connection is still watched."""
PUBLISH_INTERVAL_S = 1.0
GLANCE_PAUSE_S = 0.25
"""Between two looks; a look is two requests."""
GLANCE_MIN_AGE_S = 30.0
"""No job is looked at more often."""
GLANCED_JOBS = 24
"""At most so many running jobs are looked at, the newest first."""
GLANCE_LINES = 200
GLANCE_SPAN = timedelta(minutes=30)
"""Long enough to see a leak."""
CHECKPOINTS_AGE_S = 300.0
"""A job's checkpoints are listed no more often: one request more in ten looks."""
GLANCE_STEP_S = 60
CLOCK_SKEW = timedelta(minutes=5)


class FleetFeed:
    """Publishes a ``FleetSnapshot`` after every change, until its task is cancelled."""

    def __init__(
        self,
        session: Session,
        publish: Callable[[FleetSnapshot], object],
        *,
        rules: HealthRules = DEFAULT_RULES,
        patterns: Sequence[ProgressPattern] = (),
        list_interval_s: float = LIST_INTERVAL_S,
    ) -> None:
        self._rules = rules
        self._patterns = tuple(patterns)
        self._list_interval_s = list_interval_s
        self._offset = ClockOffset()
        self._checkpoint_lists: dict[str, tuple[float, tuple[Checkpoint, ...]]] = {}
        self._session = session
        self._publish_snapshot = publish
        self._publisher = Publisher(self._publish, session.clock, interval_s=PUBLISH_INTERVAL_S)
        self._projects: list[TrainingProject] = []
        self._jobs: dict[str, TrainingJob] = {}
        self._glances: dict[str, Glance] = {}
        self._glanced_at: dict[str, float] = {}
        self._progress: dict[str, ProgressFold] = {}
        self._listed = asyncio.Event()
        self._asked = asyncio.Event()
        self._watched = asyncio.Event()
        self._watched.set()
        self._rounds = 0
        self._prices: dict[str, float] = {}

    @property
    def watched(self) -> bool:
        """Whether anybody sees what this feed publishes."""
        return self._watched.is_set()

    @watched.setter
    def watched(self, watched: bool) -> None:
        if watched and not self.watched:
            self._watched.set()
            self._asked.set()
        elif not watched:
            self._watched.clear()

    async def run(self) -> None:
        """Feed until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publisher.run())
            tasks.create_task(self._keep_listing())
            tasks.create_task(self._keep_glancing())
            tasks.create_task(self._read_prices())

    def refresh(self) -> None:
        """Ask for everything now."""
        self._rounds = 0
        self._asked.set()

    async def _read_prices(self) -> None:
        """Once: without prices there are GPU-hours all the same."""
        await self._listed.wait()
        with suppress(RequestError):
            self._prices = await listed_prices(self._session.client)
            self._publisher.touch()

    async def _keep_listing(self) -> None:
        while True:
            interval_s = self._list_interval_s
            pause = interval_s if self.watched else max(UNWATCHED_INTERVAL_S, interval_s)
            try:
                await self._list()
            except Unauthorized:
                pause = UNAUTHORISED_INTERVAL_S
            except RequestError:
                pass  # the connection's state says so on every screen; the last lists stay
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), pause)
            self._asked.clear()

    async def _list(self) -> None:
        client = self._session.client
        everything = self._rounds % FULL_LIST_EVERY == 0 or len(self._jobs) <= FEW_JOBS
        self._rounds += 1
        self._projects = await client.projects.list()
        if everything:
            self._jobs = {job.id: job for job in await self._all_jobs()}
        else:
            fresh = {job.id: job for job in await client.jobs.search(statuses=sorted(RUNNABLE_STATUSES))}
            ended = [job for job in self._jobs.values() if not job.is_finished and job.id not in fresh]
            self._jobs |= fresh
            for job in ended:
                with suppress(NotFound):
                    self._jobs[job.id] = await client.jobs.get(job.project_id, job.id)
        for gone in self._glances.keys() - self._jobs.keys():
            del self._glances[gone]
        self._listed.set()
        self._publisher.touch()

    async def _all_jobs(self) -> list[TrainingJob]:
        """Every job, by search; a server without the search route is asked project by project."""
        client = self._session.client
        try:
            return await client.jobs.search()
        except NotFound:
            return [job for project in self._projects for job in await client.jobs.list(project.id)]

    def _publish(self) -> None:
        now = self._session.clock.now()
        self._publish_snapshot(
            fold_fleet(self._projects, self._jobs.values(), self._glances, now, self._prices)
        )

    async def _keep_glancing(self) -> None:
        await self._listed.wait()
        clock = self._session.clock
        while True:
            await self._watched.wait()
            job = self._next_to_glance()
            if job is not None:
                self._glanced_at[job.id] = clock.monotonic()
                with suppress(RequestError):
                    self._glances[job.id] = await self._glance(job)
                    self._publisher.touch()
            await clock.sleep(GLANCE_PAUSE_S if job is not None else LIST_INTERVAL_S)

    def _next_to_glance(self) -> TrainingJob | None:
        running = [job for job in self._jobs.values() if job.current_status == JobStatus.RUNNING]
        running.sort(key=lambda job: job.created_at.timestamp() if job.created_at else 0.0, reverse=True)
        now = self._session.clock.monotonic()
        due = [
            job
            for job in running[:GLANCED_JOBS]
            if now - self._glanced_at.get(job.id, -GLANCE_MIN_AGE_S) >= GLANCE_MIN_AGE_S
        ]
        return min(due, key=lambda job: self._glanced_at.get(job.id, 0.0), default=None)

    async def _glance(self, job: TrainingJob) -> Glance:
        client, now = self._session.client, self._session.clock.now()
        start_ms, end_ms = _millis((now - GLANCE_SPAN).timestamp()), _millis((now + CLOCK_SKEW).timestamp())
        records = await client.logs.page(
            job.project_id, job.id, start_ms=start_ms, end_ms=end_ms, direction="desc", limit=GLANCE_LINES
        )
        fold = self._progress.setdefault(job.id, ProgressFold(patterns=self._patterns))
        newest = fold.snapshot().last_line_at_ns or 0
        fold.add(line for line in map(_line, reversed(records)) if line.timestamp_ns > newest)
        answer = await client.metrics.get(
            job.project_id, job.id, start_ms=start_ms, end_ms=_millis(now.timestamp()), step_s=GLANCE_STEP_S
        )
        snapshot = await asyncio.to_thread(MetricsFold().fold, answer)
        if snapshot.at is not None:
            self._offset.saw(snapshot.at, now.timestamp(), GLANCE_STEP_S)
        progress = fold.snapshot()
        run = RunSnapshot(
            job,
            now,
            now,
            progress=progress,
            metrics=snapshot,
            metrics_at=now,
            history_known=True,
            log_read=True,
            checkpoints=await self._checkpoints(job),
            clock_ahead_s=self._offset.ahead_s,
        )
        earlier = self._glances.get(job.id, Glance()).findings
        found = await asyncio.to_thread(health, run, self._rules, earlier)
        return Glance(progress, _trace(snapshot), found)

    async def _checkpoints(self, job: TrainingJob) -> tuple[Checkpoint, ...]:
        """Those of a job, listed anew once in a while: to see one that is overdue."""
        now = self._session.clock.monotonic()
        listed = self._checkpoint_lists.get(job.id)
        if listed is None or now - listed[0] >= CHECKPOINTS_AGE_S:
            found = await self._session.client.checkpoints.list(job.project_id, job.id)
            listed = self._checkpoint_lists[job.id] = (now, tuple(found))
        return listed[1]


def _trace(metrics: MetricsSnapshot) -> tuple[float | None, ...]:
    """Mean GPU use over all nodes, a value a step; CPU-only jobs have none."""
    series = [node.mean_utilization for node in metrics.nodes if node.mean_utilization.values]
    if not series:
        return ()
    length = min(len(one.values) for one in series)
    return tuple(
        sum(one.values[position - length] for one in series) / len(series) for position in range(length)
    )


def _line(record: LogRecord) -> LogLine:
    stamp = record.get("timestamp", "")
    return LogLine(
        int(stamp) if stamp.isdigit() else 0,
        record.get("message", ""),
        record.get("replica"),
        record.get("level"),
    )


def _millis(seconds: float) -> int:
    return int(seconds * 1000)
