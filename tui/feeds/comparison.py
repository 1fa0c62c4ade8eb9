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
    """Return the last job that was created before ``job`` in its project, if any. Raises RequestError."""
    jobs = await session.client.jobs.list(job.project_id)
    dated_jobs = [other for other in jobs if other.created_at is not None and other.id != job.id]
    older_jobs = [
        other
        for other in dated_jobs
        if job.created_at is None or time_key(other.created_at) < time_key(job.created_at)
    ]
    return max(older_jobs, key=lambda other: time_key(other.created_at), default=None)


class RunCache(dict[str, ComparedRun]):
    """Cache of finished runs by job ID: these runs no longer change, and were read without gaps."""

    def add_if_final(self, run: ComparedRun, max_runs: int = 16) -> None:
        if run.job.is_finished and not run.gap_count:
            self[run.job.id] = run
            while len(self) > max_runs:
                del self[next(iter(self))]


class ComparisonFeed:
    """Publishes the compared runs, in the order of ``jobs``, after every change until cancelled."""

    def __init__(
        self,
        session: Session,
        cache: RunCache,
        jobs: Sequence[TrainingJob],
        settings: RunSettings = DEFAULT,
        *,
        publish: Callable[[tuple[ComparedRun, ...]], object],
    ) -> None:
        self._settings = settings
        self._session = session
        self._cache = cache
        self._publish_runs = publish
        self._throttle = Throttle(self._publish, session.clock, interval_s=0.5)
        self._runs = {job.id: cache.get(job.id) or ComparedRun(job) for job in jobs}
        # Read at most two logs at a time, because each may take several concurrent requests.
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
                self._change(replace(run, state="gone", fraction_read=None))
            else:
                self._change(replace(run, state="failed", fraction_read=None, error=str(error)))

        await retrying(partial(self._read, job), LASTING, sleep=self._pause, on_wait=show_error)

    async def _read(self, job: TrainingJob) -> None:
        """Read a run; if it has not ended, poll it until then, and once more for late lines."""
        client, clock = self._session.client, self._session.clock
        job = await client.jobs.get(job.project_id, job.id)  # Home's data may be outdated.

        def show_progress(fraction: float | None, _line_count: int) -> None:
            run = replace(self._runs[job.id], fraction_read=fraction)
            self._change(run if job.is_finished else replace(run, run=watcher.update(log_read=True)))

        watcher = RunWatcher(client, job, self._settings, max_points=5000, on_log_progress=show_progress)
        watcher.change(price_per_minute=price_of(job, self._prices, self._settings.prices))
        poll = partial(watcher.poll, with_metrics=not job.node_count)
        self._change(ComparedRun(job, "reading"))
        async with self._log_slots if job.is_finished else nullcontext():
            await poll(watcher.log.read_whole if job.is_finished else watcher.log.read_new)
        self._show(watcher)
        is_last_poll = job.is_finished
        while not is_last_poll:
            await clock.sleep(5.0)
            is_last_poll = watcher.job.is_finished
            try:
                await watcher.read_status()
                await poll(watcher.log.read_new)
            except RequestError as error:
                if not is_transient(error):
                    raise
                is_last_poll = False
            self._show(watcher)

    def _show(self, watcher: RunWatcher) -> None:
        run = ComparedRun(watcher.job, "read", watcher.snapshot, gap_count=watcher.log.gap_count)
        if watcher.job.is_finished and not watcher.read_errors:
            self._cache.add_if_final(run)
        self._change(run)
