"""The compare screen's feed: reads each run's log once, and follows runs that have not ended."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import TrainingJob
from api_client.models.logs import LogEnd, LogGap
from tui.analysis.comparison import ComparedRun, State
from tui.analysis.cost import price_of
from tui.feeds.throttle import RUN_PUBLISH_INTERVAL_S, Throttle, sleep_or_event
from tui.readers.run import fold_in_slices, read_checkpoints_if_any, read_run
from tui.readers.session import Session, listed_prices
from tui.readers.watcher import RunWatcher
from tui.settings.runs import DEFAULT, RunSettings

RUNS_AT_ONCE = 2
"""Logs read at the same time; each may itself be read by several concurrent readers."""
POINTS = 5000
"""Maximum number of points per curve."""
POLL_INTERVAL_S = 20.0
"""Polling interval for the checkpoints and the status of an unfinished run."""


async def job_before(session: Session, job: TrainingJob) -> TrainingJob | None:
    """Return the newest older job of the same project. Raises RequestError."""
    jobs = await session.client.jobs.list(job.project_id)
    dated = [
        (other.created_at, other) for other in jobs if other.created_at is not None and other.id != job.id
    ]
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
        cached = self._held.get(job_id)
        if cached is not None:
            self._held.move_to_end(job_id)
        return cached

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
        settings: RunSettings = DEFAULT,
        *,
        publish: Callable[[tuple[ComparedRun, ...]], object],
    ) -> None:
        self._settings = settings
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
            self._settings,
            prices=self._prices,
            max_points=POINTS,
            with_health_metrics=False,
            on_part=on_part,
        )
        run = ComparedRun(job, "read", reading.run, gap_count=reading.gap_count)
        if not reading.unread:
            self._memory.keep(run)
        self._change(run)

    async def _follow(self, job: TrainingJob) -> None:
        watcher = RunWatcher(self._session.client, job, self._settings, max_points=POINTS)
        watcher.change(price_per_minute=price_of(job, self._prices, self._settings.prices))
        live = _LiveRun(self._session, watcher, self._change)
        watching = asyncio.create_task(live.poll_job())
        try:
            await live.follow()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        await live.poll()
        self._change(live.compared())


class _LiveRun:
    """A run that has not ended; ``change`` is called with it after every change."""

    def __init__(self, session: Session, watcher: RunWatcher, change: Callable[[ComparedRun], None]) -> None:
        self._clock = session.clock
        self._watcher = watcher
        self._change = change
        self._part: float | None = None
        self._caught_up = False
        self._gaps = 0

    async def follow(self) -> None:
        watcher, job = self._watcher, self._watcher.job
        start = job.earliest_time(self._clock.now())
        async with aclosing(watcher.client.logs.follow(job.project_id, job.id, start=start)) as stream:
            async for part in stream:
                if isinstance(part, LogEnd):
                    watcher.change(job=part.job)
                    return
                if part.finished_job is not None:
                    watcher.change(job=part.finished_job)
                await fold_in_slices(watcher.progress, part.entries)
                self._gaps += sum(isinstance(entry, LogGap) for entry in part.entries)
                self._caught_up |= part.caught_up
                self._part = part.read_part
                self._change(self.compared())

    async def poll_job(self) -> None:
        while True:
            with suppress(RequestError):
                await self.poll()
                self._change(self.compared())
            await self._clock.sleep(POLL_INTERVAL_S)

    async def poll(self) -> None:
        """Poll status, checkpoints, and history, and metrics where the job lacks a node count."""
        watcher, job = self._watcher, self._watcher.job
        if not job.node_count:
            with suppress(ErrorAnswer, InvalidAnswer):
                await watcher.read_health_metrics()
                watcher.change(metrics=watcher.snapshot.health_metrics)
        watcher.change(job=await watcher.client.jobs.get(job.project_id, job.id))
        await read_checkpoints_if_any(watcher)
        await watcher.read_history()

    def compared(self) -> ComparedRun:
        run = self._watcher.update(seen_at=self._clock.now(), log_read=True, history_known=True)
        state: State = "read" if self._caught_up or run.job.is_finished else "reading"
        return ComparedRun(run.job, state, run, None if self._caught_up else self._part, "", self._gaps)
