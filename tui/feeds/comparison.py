"""The compare screen's feed: reads each run's log once, and follows runs that have not ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S, LogGap, stamp_ns
from tui.analysis.comparison import ComparedRun, State
from tui.analysis.cost import price_of
from tui.feeds.throttle import Pause, Throttle
from tui.readers.run import fold_in_slices, read_checkpoints_if_any, read_run
from tui.readers.session import Session, listed_prices
from tui.readers.watcher import RunWatcher
from tui.settings.runs import DEFAULT, RunSettings

RUNS_AT_ONCE = 2
"""Logs read at the same time; each may itself be read by several concurrent readers."""
POINTS = 5000
"""Maximum number of points per curve."""
POLL_S = 5.0
"""Polling interval of an unfinished run."""


async def job_before(session: Session, job: TrainingJob) -> TrainingJob | None:
    """Return the newest older job of the same project. Raises RequestError."""
    jobs = await session.client.jobs.list(job.project_id)
    dated = [
        (other.created_at, other) for other in jobs if other.created_at is not None and other.id != job.id
    ]
    older = [pair for pair in dated if job.created_at is None or pair[0] < job.created_at]
    return max(older, key=lambda pair: pair[0])[1] if older else None


class RunCache(dict[str, ComparedRun]):
    """The newest finished runs that were read without gaps, by job id, since they no longer change."""

    def keep(self, run: ComparedRun, most: int = 16) -> None:
        if run.job.is_finished and not run.gap_count:
            self[run.job.id] = run
            while len(self) > most:
                del self[next(iter(self))]


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
        self._throttle = Throttle(self._publish, session.clock, interval_s=0.5)
        self._runs = {job.id: memory.get(job.id) or ComparedRun(job) for job in jobs}
        self._free = asyncio.Semaphore(RUNS_AT_ONCE)
        self._prices: dict[str, float] = {}
        self._pause = Pause(session.clock)

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
        self._pause.end()

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

        await retrying(partial(self._read_or_follow, job), LASTING, sleep=self._pause, on_wait=show_error)

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
        """Read what is new of a run until it has ended, and once more: lines may arrive late."""
        client, clock, gap_count = self._session.client, self._session.clock, 0
        watcher = RunWatcher(client, job, self._settings, max_points=POINTS)
        watcher.change(price_per_minute=price_of(job, self._prices, self._settings.prices))
        now = clock.now()
        start = job.earliest_time(now)
        log = client.logs.increments(job.project_id, job.id, start=start)
        state: State = "reading"
        is_last = False
        while not is_last:
            is_last = watcher.job.is_finished
            async with aclosing(log.poll()) as polled:
                async for entries in polled:
                    await fold_in_slices(watcher.progress, entries)
                    gap_count += sum(isinstance(entry, LogGap) for entry in entries)
                    if entries:
                        left_s = now.timestamp() - stamp_ns(entries[-1]) / NS_PER_S
                        part = 1.0 - min(max(left_s / (now - start).total_seconds(), 0.0), 1.0)
                        self._change(replace(_compared(watcher, state, gap_count), part=part))
            state = "read"
            with suppress(RequestError):
                await _read_other_parts(watcher)
            self._change(_compared(watcher, state, gap_count))
            await clock.sleep(POLL_S)


def _compared(watcher: RunWatcher, state: State, gap_count: int) -> ComparedRun:
    run = watcher.update(seen_at=watcher.client.clock.now(), log_read=True, history_known=True)
    return ComparedRun(run.job, state, run, gap_count=gap_count)


async def _read_other_parts(watcher: RunWatcher) -> None:
    """Read status, checkpoints, and history, and metrics where the job lacks a node count."""
    job = watcher.job
    if not job.node_count:
        with suppress(ErrorAnswer, InvalidAnswer):
            await watcher.read_health_metrics()
            watcher.change(metrics=watcher.snapshot.health_metrics)
    watcher.change(job=await watcher.client.jobs.get(job.project_id, job.id))
    await read_checkpoints_if_any(watcher)
    await watcher.read_history()
