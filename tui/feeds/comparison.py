"""The compare screen's feed: reads each run's log once, and follows runs that have not ended."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import TrainingJob
from api_client.models.logs import LogEnd, LogGap
from tui.analysis.comparison import ComparedRun, State
from tui.analysis.cost import price_of
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.feeds.throttle import RUN_PUBLISH_INTERVAL_S, Throttle, sleep_or_event
from tui.readers.run import (
    checkpoints_of,
    fetch_health_metrics,
    fold_in_slices,
    history_of,
    read_run,
    run_snapshot,
)
from tui.readers.session import Session, listed_prices

RUNS_AT_ONCE = 2
"""Logs read at the same time; each may itself be read by several concurrent readers."""
POINTS = 5000
"""Maximum number of points per curve."""
POLL_INTERVAL_S = 20.0
"""Polling interval for the checkpoints and the status of an unfinished run."""


async def job_before(session: Session, job: TrainingJob) -> TrainingJob | None:
    """Return the newest older job of the same project. Raises RequestError."""
    jobs = await session.client.jobs.list(job.project_id)
    dated = [(one.created_at, one) for one in jobs if one.created_at is not None and one.id != job.id]
    older = [pair for pair in dated if job.created_at is None or pair[0] < job.created_at]
    return max(older, key=lambda pair: pair[0])[1] if older else None


class RunCache:
    """A cache of finished runs, the most recently used ones, since they no longer change."""

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._held: OrderedDict[str, ComparedRun] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def recall(self, job_id: str) -> ComparedRun | None:
        found = self._held.get(job_id)
        if found is not None:
            self._held.move_to_end(job_id)
        return found

    def keep(self, run: ComparedRun) -> None:
        """Store a run if it has ended and was read without gaps."""
        if run.job.is_finished and run.state == "read" and not run.gap_count:
            self._held[run.job.id] = run
            self._held.move_to_end(run.job.id)
            while len(self._held) > self._most:
                self._held.popitem(last=False)


class ComparisonFeed:
    """Publishes the runs, in the given order, after every change until cancelled."""

    def __init__(
        self,
        session: Session,
        memory: RunCache,
        jobs: Sequence[TrainingJob],
        *,
        publish: Callable[[tuple[ComparedRun, ...]], object],
        patterns: Sequence[ProgressPattern] = (),
        own_prices: Mapping[str, float] | None = None,
    ) -> None:
        self._patterns = tuple(patterns)
        self._own_prices = own_prices or {}
        self._session = session
        self._memory = memory
        self._publish_runs = publish
        self._throttle = Throttle(self._publish, session.clock, interval_s=RUN_PUBLISH_INTERVAL_S)
        self._runs = {job.id: memory.recall(job.id) or ComparedRun(job) for job in jobs}
        self._free = asyncio.Semaphore(RUNS_AT_ONCE)
        self._prices: dict[str, float] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        self._throttle.request()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._throttle.run())
            with suppress(RequestError):  # Prices are optional; everything else is shown without them.
                self._prices = await listed_prices(self._session.client)
            for run in list(self._runs.values()):
                if run.state != "read":
                    tasks.create_task(self._retry_forever(run.job))

    def refresh(self) -> None:
        self._wake.set()
        self._wake.clear()

    def _publish(self) -> None:
        self._publish_runs(tuple(self._runs.values()))

    def _change(self, run: ComparedRun) -> None:
        self._runs[run.job.id] = run
        self._throttle.request()

    async def _retry_forever(self, job: TrainingJob) -> None:
        """Read a run, retrying after errors; ``refresh`` retries at once."""

        def show_error(error: RequestError, _delay_s: float) -> None:
            run = self._runs[job.id]
            if isinstance(error, NotFound):
                self._change(replace(run, state="gone", part=None))
            else:
                self._change(replace(run, state="failed", part=None, error=str(error)))

        pause = partial(sleep_or_event, self._session.clock, self._wake)
        await retrying(partial(self._read_or_follow, job), LASTING, sleep=pause, on_wait=show_error)

    async def _read_or_follow(self, job: TrainingJob) -> None:
        # Home's data may be outdated.
        job = await self._session.client.jobs.get(job.project_id, job.id)
        if job.is_finished:
            async with self._free:
                await self._read(job)
        else:
            await self._follow(job)

    async def _read(self, job: TrainingJob) -> None:
        self._change(ComparedRun(job, "reading"))

        def on_part(part: float | None, _lines: int) -> None:
            self._change(replace(self._runs[job.id], part=part))

        reading = await read_run(
            self._session.client,
            job,
            prices=self._prices,
            own_prices=self._own_prices,
            patterns=self._patterns,
            max_points=POINTS,
            with_health_metrics=False,
            on_part=on_part,
        )
        run = ComparedRun(job, "read", reading.run, gap_count=reading.gap_count)
        if not reading.unread:
            self._memory.keep(run)
        self._change(run)

    async def _follow(self, job: TrainingJob) -> None:
        price = price_of(job, self._prices, self._own_prices)
        live = _LiveRun(self._session, job, price, self._patterns, self._change)
        watching = asyncio.create_task(live.poll_job())
        try:
            await live.follow()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        await live.poll()
        self._change(live.compared())


class _LiveRun:
    def __init__(
        self,
        session: Session,
        job: TrainingJob,
        price: float | None,
        patterns: Sequence[ProgressPattern],
        change: Callable[[ComparedRun], None],
    ) -> None:
        self._session = session
        self._job = job
        self._price = price
        self._change = change
        self._fold = ProgressFold(max_points=POINTS, patterns=patterns)
        self._run = run_snapshot(
            job, session.clock.now(), self._fold, checkpoints=None, queue=None, health_metrics=None,
            price_per_minute=self._price,
        )  # fmt: skip
        self._part: float | None = None
        self._caught_up = False
        self._gaps = 0

    async def follow(self) -> None:
        logs = self._session.client.logs
        start = self._job.earliest_time(self._session.clock.now())
        async with aclosing(logs.follow(self._job.project_id, self._job.id, start=start)) as stream:
            async for part in stream:
                if isinstance(part, LogEnd):
                    self._job = part.job
                    return
                if part.finished_job is not None:
                    self._job = part.finished_job
                await fold_in_slices(self._fold, part.entries)
                self._gaps += sum(isinstance(one, LogGap) for one in part.entries)
                self._caught_up |= part.caught_up
                self._part = part.read_part
                self._change(self.compared())

    async def poll_job(self) -> None:
        while True:
            with suppress(RequestError):
                await self.poll()
                self._change(self.compared())
            await self._session.clock.sleep(POLL_INTERVAL_S)

    async def poll(self) -> None:
        """Poll status, checkpoints, and history, and metrics where the job lacks a node count."""
        client, now = self._session.client, self._session.clock.now()
        health_metrics = None
        if not self._job.node_count:
            with suppress(ErrorAnswer, InvalidAnswer):
                health_metrics = await fetch_health_metrics(client, self._job, now)
        self._run = replace(
            self._run,
            job=await client.jobs.get(self._job.project_id, self._job.id),
            metrics=health_metrics or self._run.metrics,
            checkpoints=await checkpoints_of(client, self._job),
            queue=await history_of(client, self._job),
        )
        self._job = self._run.job

    def compared(self) -> ComparedRun:
        now = self._session.clock.now()
        run = replace(self._run, job=self._job, at=now, seen_at=now, progress=self._fold.snapshot())
        state: State = "read" if self._caught_up or self._job.is_finished else "reading"
        return ComparedRun(self._job, state, run, None if self._caught_up else self._part, "", self._gaps)
