"""The compare screen's feed: reads each run's log once, and follows runs that have not ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

from api_client.errors import NotFound, RequestError
from api_client.http.retry import LASTING, is_transient, retrying
from api_client.models import TrainingJob
from tui.analysis.comparison import ComparedRun
from tui.analysis.cost import price_of
from tui.feeds.throttle import Pause, Throttle
from tui.readers.session import Session, listed_prices
from tui.readers.watcher import RunWatcher
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.times import time_key


async def job_before(session: Session, job: TrainingJob) -> TrainingJob | None:
    """Return the newest older job of the same project. Raises RequestError."""
    jobs = await session.client.jobs.list(job.project_id)
    dated = [other for other in jobs if other.created_at is not None and other.id != job.id]
    older = [
        other
        for other in dated
        if job.created_at is None or time_key(other.created_at) < time_key(job.created_at)
    ]
    return max(older, key=lambda other: time_key(other.created_at), default=None)


class RunCache(dict[str, ComparedRun]):
    """The newest finished runs that were read without gaps, by job id, since they no longer change."""

    def keep(self, run: ComparedRun, max_runs: int = 16) -> None:
        if run.job.is_finished and not run.gap_count:
            self[run.job.id] = run
            while len(self) > max_runs:
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
        self._cache = memory
        self._publish_runs = publish
        self._throttle = Throttle(self._publish, session.clock, interval_s=0.5)
        self._runs = {job.id: memory.get(job.id) or ComparedRun(job) for job in jobs}
        # two logs at a time: each may be read by several concurrent readers
        self._log_slots = asyncio.Semaphore(2)
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

        await retrying(partial(self._read, job), LASTING, sleep=self._pause, on_wait=show_error)

    async def _read(self, job: TrainingJob) -> None:
        """Read a run; if it has not ended, poll it until then, and once more for late lines."""
        client, clock = self._session.client, self._session.clock
        job = await client.jobs.get(job.project_id, job.id)  # Home's data may be outdated.

        def show_part(part: float | None, _lines: int) -> None:
            run = replace(self._runs[job.id], part=part)
            self._change(run if job.is_finished else replace(run, run=watcher.update(log_read=True)))

        watcher = RunWatcher(client, job, self._settings, max_points=5000, on_part=show_part)
        watcher.change(price_per_minute=price_of(job, self._prices, self._settings.prices))
        poll = partial(watcher.poll, with_metrics=not job.node_count)
        self._change(ComparedRun(job, "reading"))
        async with self._log_slots if job.is_finished else nullcontext():
            await poll(watcher.log.read_whole if job.is_finished else watcher.log.read_new)
        self._show(watcher)
        is_last = job.is_finished
        while not is_last:
            await clock.sleep(5.0)
            is_last = watcher.job.is_finished
            try:
                await watcher.read_status()
                await poll(watcher.log.read_new)
            except RequestError as error:
                if not is_transient(error):
                    raise
                is_last = False
            self._show(watcher)

    def _show(self, watcher: RunWatcher) -> None:
        run = ComparedRun(watcher.job, "read", watcher.snapshot, gap_count=watcher.log.gap_count)
        if watcher.job.is_finished and not watcher.unread:
            self._cache.keep(run)
        self._change(run)
