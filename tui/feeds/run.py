"""The job screen's feed: status, metrics, log, checkpoints and prices of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.models import TrainingJob
from api_client.streams.records import LogLine
from tui.feeds.publisher import Publisher
from tui.feeds.run_log import LogPart, RunLog
from tui.feeds.session import Session
from tui.insight.health import findings
from tui.insight.node_metrics import MetricsFold
from tui.insight.progress import ProgressFold
from tui.insight.run import RunSnapshot, server_time
from tui.insight.stragglers import slow_nodes

STATUS_INTERVAL_S = 3.0
METRICS_INTERVAL_S = 2.0
CHECKPOINTS_INTERVAL_S = 10.0
RETRY_INTERVAL_S = 10.0
"""After an error that the streams do not wait out themselves."""
POINTS_ACROSS = 240
"""Metric samples wanted across the span shown; a chart has no more columns to show them."""
SHORTEST_STEP_S = 5


class RunFeed:
    """Publishes a ``RunSnapshot`` after changes and every part of the log, until cancelled.

    ``on_gone`` is called once if the server no longer knows the job.
    """

    def __init__(
        self,
        session: Session,
        job: TrainingJob,
        *,
        publish: Callable[[RunSnapshot], object],
        on_log: Callable[[LogPart], object],
        on_gone: Callable[[], object],
        span: timedelta,
    ) -> None:
        self._session = session
        self._log = RunLog(session, take=self._take_log, tell=on_log, end=self._log_ended)
        self._on_gone = on_gone
        self._publish_snapshot = publish
        self._publisher = Publisher(self._publish, session.clock)
        self._span = span
        now = session.clock.now()
        self._snapshot = RunSnapshot(job=job, at=now, seen_at=now)
        self._progress = ProgressFold()
        self._metrics = MetricsFold()
        self._span_changed = asyncio.Event()
        self._asked = asyncio.Event()

    async def run(self) -> None:
        """Feed until cancelled."""
        self._publisher.touch()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publisher.run())
            tasks.create_task(self._keep(self._watch_status))
            tasks.create_task(self._keep(self._read_log))
            tasks.create_task(self._keep_metrics())
            tasks.create_task(self._keep(self._poll_checkpoints))
            tasks.create_task(self._keep(self._read_price))
            tasks.create_task(self._tick())

    def refresh(self) -> None:
        """Ask for checkpoints and metrics now."""
        self._asked.set()
        self._span_changed.set()

    def set_span(self, span: timedelta) -> None:
        """Show metrics over another time; they are read anew at a fitting resolution."""
        self._span = span
        self._span_changed.set()

    @property
    def _job(self) -> TrainingJob:
        return self._snapshot.job

    def _publish(self) -> None:
        now = self._session.clock.now()
        progress, metrics = self._progress.snapshot(), self._metrics.snapshot
        server_now = server_time(metrics, now)
        self._change(
            at=now,
            progress=progress,
            log_read=self._log.is_read,
            metrics=metrics,
            slow_nodes=slow_nodes(metrics),
            findings=findings(self._job.current_status, progress, metrics, server_now),
        )
        self._publish_snapshot(self._snapshot)

    def _change(self, **changes: Any) -> None:
        self._snapshot = replace(self._snapshot, **changes)

    async def _keep(self, feed: Callable[[], Awaitable[None]]) -> None:
        """Run one part to its end, again after an error that may pass."""
        while True:
            try:
                await feed()
            except NotFound:
                self._on_gone()
            except RequestError:
                await self._session.clock.sleep(RETRY_INTERVAL_S)
                continue
            return

    async def _tick(self) -> None:
        """Ages and elapsed times move on, even when nothing else does."""
        while True:
            await self._session.clock.sleep(1.0)
            self._publisher.touch()

    async def _watch_status(self) -> None:
        jobs = self._session.client.jobs
        status = ""
        async for job in jobs.watch(self._job.project_id, self._job.id, interval_s=STATUS_INTERVAL_S):
            self._change(job=job, seen_at=self._session.clock.now())
            self._publisher.touch()
            if job.current_status != status:
                status = job.current_status
                await self._read_queue()

    async def _read_queue(self) -> None:
        """The history of statuses; only org admins may read it, and not every server has it."""
        with suppress(ErrorAnswer, InvalidAnswer):
            self._change(queue=await self._session.client.jobs.queue_context(self._job.id))
        self._change(history_known=True)
        self._publisher.touch()

    async def _read_price(self) -> None:
        with suppress(ErrorAnswer, InvalidAnswer):
            for priced in await self._session.client.account.instance_type_prices():
                if priced.instance_type.id == self._job.instance_type.id:
                    self._change(price_per_minute=priced.price)
                    self._publisher.touch()

    async def _read_log(self) -> None:
        self._progress = ProgressFold()
        await self._log.read(self._job)

    def _take_log(self, lines: Iterable[LogLine]) -> None:
        self._progress.add(lines)
        self._publisher.touch()

    def _log_ended(self, job: TrainingJob) -> None:
        self._change(job=job)
        self._publisher.touch()

    async def _keep_metrics(self) -> None:
        """Follow the metrics; a new span begins anew, the old picture staying until it has data."""
        while True:
            self._span_changed.clear()
            following = asyncio.create_task(self._keep(self._follow_metrics))
            changed = asyncio.create_task(self._span_changed.wait())
            try:
                await asyncio.wait({following, changed}, return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()  # what went wrong beyond a failed request ends the feed, not silently
                await changed
            finally:
                changed.cancel()
                following.cancel()
                await asyncio.gather(following, changed, return_exceptions=True)

    async def _follow_metrics(self) -> None:
        job, now = self._job, self._session.clock.now()
        end = job.updated_at if job.is_finished and job.updated_at else now
        start = end - self._span
        if job.created_at is not None:
            start = max(start, job.created_at)
        step_s = max(SHORTEST_STEP_S, int(self._span.total_seconds() / POINTS_ACROSS))
        fold = MetricsFold()
        stream = self._session.client.metrics.follow(
            job.project_id, job.id, start=start, step_s=step_s, interval_s=max(METRICS_INTERVAL_S, step_s / 2)
        )
        async for answer in stream:
            await asyncio.to_thread(fold.fold, answer)  # the first answer of a large job takes half a second
            self._metrics = fold
            self._change(metrics_at=self._session.clock.now())
            self._publisher.touch()

    async def _poll_checkpoints(self) -> None:
        """List the checkpoints while they may change: until the job has ended and all are uploaded."""
        client = self._session.client
        while True:
            try:
                found = await client.checkpoints.list(self._job.project_id, self._job.id)
            except (NotFound, Unauthorized):
                raise
            except RequestError:
                found = None
            if found is not None:
                self._change(checkpoints=tuple(found))
                self._publisher.touch()
                uploading = any(checkpoint.sync_status == "SYNCING" for checkpoint in found)
                if self._job.is_finished and not uploading:
                    await self._asked.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), CHECKPOINTS_INTERVAL_S)
            self._asked.clear()
