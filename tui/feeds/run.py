"""The job screen's feed: status, metrics, log, checkpoints and prices of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from api_client.errors import (
    NOT_RECORDED,
    ConfigurationError,
    ErrorAnswer,
    InvalidAnswer,
    NotFound,
    RequestError,
)
from api_client.http.retry import LASTING, retrying
from api_client.models import Checkpoint, JobMetrics, TrainingJob
from api_client.models.logs import NS_PER_S, LogEntry, LogGap, stamp_ns
from tui.analysis.connection import CHECKPOINTS, LOG, METRICS, STATUS, ClockOffset
from tui.analysis.cost import price_of
from tui.analysis.health.checkpoint_faults import checkpoint_faults
from tui.analysis.health.judge import judged, with_findings
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.node_metrics import MetricsFold
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import saved_key
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import STALE_AFTER_S, RunSnapshot
from tui.analysis.run.verdict import is_all_checked
from tui.feeds.checkpoint_evidence import kept_losses_of
from tui.feeds.run_log import LogPart, RunLog
from tui.feeds.throttle import RUN_PUBLISH_INTERVAL_S, Throttle, sleep_or_event
from tui.readers.billing import BILL_INTERVAL_S, read_bill
from tui.readers.run import HEALTH_STEP_S, HealthMetrics, has_many_nodes, metrics_in_parts
from tui.readers.session import Session, listed_prices
from tui.text.times import time_key

STATUS_INTERVAL_S = 3.0
STATUSES_MISSED = 3
"""Number of missed status updates after which the data is stale."""
METRICS_INTERVAL_S = 2.0
"""Minimum polling interval; longer for slow sampling: half its interval, or all of it with many nodes."""
CHECKPOINTS_INTERVAL_S = 10.0
HEALTH_INTERVAL_S = 2.0
"""Interval between health checks."""
HEALTH_INTERVAL_OF_MANY_S = 5.0
"""The same for a run of more than ``FEW_NODES`` nodes, since every GPU is checked."""
RECORDED_INTERVAL_S = 1.0
FIRST_RECORDED = timedelta(minutes=1)
"""The part of a recorded log that is folded here, to show a step until the whole progress is known."""
POINTS_ACROSS = 240
"""Metric samples to request across the displayed time range; charts do not have more columns."""
MIN_METRIC_STEP_S = 5
MAX_METRIC_POINTS = 1400
"""Maximum number of samples read per series, which matters if a short window is far in the past."""
MAX_METRIC_POINTS_MANY_NODES = 480
"""The same for a job with more than ``FEW_NODES`` nodes."""
NEWEST_SAMPLES = timedelta(minutes=5)
"""The part of the metrics of many nodes to show first."""
LATE_SAMPLES = timedelta(minutes=2)
"""The last part of the history to read again, because samples may be late."""
REREAD_S = 3600.0
"""Interval for reading the samples again, because new ones may be denser than those of the time range."""
NEW_POINTS = int(REREAD_S / MIN_METRIC_STEP_S)
"""Maximum number of samples to keep in addition, so that following drops none of the time range."""


class RunFeed:
    """Publishes a ``RunSnapshot`` after changes, and every part of the log, until cancelled.

    ``on_gone`` is called once if the server does not know the job; polling continues, since the response
    may come from a proxy. ``rules`` are the thresholds of the health checks, ``patterns`` parse the lines
    of custom trainers, and ``prices`` (USD per minute and node, by instance id or name) take precedence
    over the listed ones. ``findings`` are those already known: they stay until the job's own log and
    metrics have been checked. ``recorded_progress`` reads the progress of a recording, whose log is too long
    to be folded for every moment.
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
        rules: HealthRules = DEFAULT_RULES,
        patterns: Sequence[ProgressPattern] = (),
        prices: Mapping[str, float] | None = None,
        findings: tuple[HealthFinding, ...] = (),
        status_interval_s: float = STATUS_INTERVAL_S,
        metrics_interval_s: float = METRICS_INTERVAL_S,
        checkpoints_interval_s: float = CHECKPOINTS_INTERVAL_S,
        recorded_progress: Callable[[], Awaitable[ProgressSnapshot]] | None = None,
    ) -> None:
        self._status_interval_s = status_interval_s
        self._metrics_interval_s = metrics_interval_s
        self._checkpoints_interval_s = checkpoints_interval_s
        self._session = session
        self._log = RunLog(
            session,
            restart=self._restart_progress,
            fill=self._fill_gap,
            take=self._take_log,
            tell=on_log,
            end=self._log_ended,
        )
        self._read_recorded = recorded_progress
        self._recorded: ProgressSnapshot | None = None
        self._on_gone = on_gone
        self._was_gone = False
        self._publish_snapshot = publish
        self._throttle = Throttle(self._publish, session.clock, interval_s=RUN_PUBLISH_INTERVAL_S)
        self._span = self._shown = span
        now = session.clock.now()
        stale_after_s = max(STALE_AFTER_S, STATUSES_MISSED * status_interval_s)
        begun = RunSnapshot(job=job, at=now, seen_at=now, stale_after_s=stale_after_s)
        self._snapshot = with_findings(begun, findings)
        self._known_before = findings
        self._rules = rules
        self._patterns = tuple(patterns)
        self._prices = prices or {}
        self._checked_at = -HEALTH_INTERVAL_OF_MANY_S
        self._checked_state: tuple[object, ...] = ()
        self._faults_state: tuple[object, ...] = ()
        self._kept_of: tuple[Checkpoint, ...] | None = None
        self._check_requested = asyncio.Event()
        self._progress = ProgressFold(patterns=self._patterns)
        self._metrics = MetricsFold()
        self._health_metrics = HealthMetrics(session.client, job)
        self._offset = ClockOffset()
        self._span_changed = asyncio.Event()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        self._throttle.request()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._throttle.run())
                tasks.create_task(self._check_health())
                tasks.create_task(self._retry_forever(self._watch_status, STATUS, part=STATUS))
                tasks.create_task(self._retry_forever(self._read_log, LOG, part=LOG))
                tasks.create_task(self._poll_metrics())
                tasks.create_task(self._retry_forever(self._poll_checkpoints, CHECKPOINTS))
                tasks.create_task(self._retry_forever(self._read_price))
                tasks.create_task(self._retry_forever(self._poll_bill))
                tasks.create_task(self._tick())
                if self._read_recorded is not None:
                    tasks.create_task(self._follow_recorded(self._read_recorded))
        finally:
            for what in (STATUS, LOG, METRICS, CHECKPOINTS):
                self._session.report_success(what)
            # large; the feed is in reference cycles, and collecting them as garbage stalls keys
            del self._metrics, self._health_metrics, self._snapshot

    def refresh(self) -> None:
        self._wake.set()
        self._wake.clear()
        self._span_changed.set()

    async def retry(self, gap: LogGap, from_ns: int | None = None) -> None:
        """Read a gap of the log again, see ``RunLog.retry``, and publish the result. Raises RequestError."""
        await self._log.retry(gap, from_ns)

    def set_span(self, span: timedelta, shown: timedelta | None = None) -> None:
        """Show metrics of another time range, read again at a suitable resolution.

        ``shown`` is the length of the window if it is only a part of that time range; the resolution is
        then finer.
        """
        self._span, self._shown = span, shown or span
        self._span_changed.set()

    @property
    def _job(self) -> TrainingJob:
        return self._snapshot.job

    def _publish(self) -> None:
        now = self._session.clock.now()
        self._change(
            at=now,
            progress=self._recorded or self._progress.snapshot(),
            log_read=self._log.is_read if self._read_recorded is None else self._recorded_is_read,
            metrics=self._metrics.snapshot,
        )
        self._publish_snapshot(self._snapshot)
        self._request_health_check()

    def _request_health_check(self) -> None:
        """Request a health check if one is due: problems take minutes to show, so not on every change."""
        now = self._session.clock.monotonic()
        run = self._snapshot
        state = (run.job.current_status, run.log_read, run.health_metrics is not None, run.failing)
        interval_s = HEALTH_INTERVAL_OF_MANY_S if has_many_nodes(self._job) else HEALTH_INTERVAL_S
        if state != self._checked_state or now - self._checked_at >= interval_s:
            self._checked_at, self._checked_state = now, state
            self._check_requested.set()

    async def _check_health(self) -> None:
        """Run health checks on request; in a thread, since 64 nodes take longer than a key press may wait."""
        while True:
            await self._check_requested.wait()
            self._check_requested.clear()
            run = self._snapshot
            run = await asyncio.to_thread(judged, run, self._rules, run.findings)
            await self._check_checkpoints(run)
            if is_all_checked(run):
                self._known_before = ()
            own = {finding.key for finding in run.findings}
            findings = [*run.findings, *(finding for finding in self._known_before if finding.key not in own)]
            before = self._snapshot
            self._change(checked_sources=run.checked_sources, compares_nodes=run.compares_nodes)
            self._snapshot = with_findings(self._snapshot, findings)
            if self._snapshot != before:
                self._throttle.request()

    async def _check_checkpoints(self, run: RunSnapshot) -> None:
        """Check the checkpoints again if there are new ones, or the loss broke, recovered or restarted."""
        restarts = run.progress.restarts if run.progress is not None else ()
        broken = [(item.kind, item.since) for item in run.findings if item.kind.loss]
        newest = max(run.checkpoints or (), key=lambda item: time_key(item.created_at), default=None)
        waits = newest is not None and saved_key(newest) not in (run.faults or {})
        readings = len(run.progress.loss_series) if waits and run.progress is not None else 0
        state = (run.log_read, run.checkpoints, restarts, broken, readings)
        if run.log_read and state != self._faults_state:
            faults = await asyncio.to_thread(checkpoint_faults, run, self._rules)
            self._faults_state = state
            self._update(faults=faults)

    def _change(self, **changes: Any) -> None:
        self._snapshot = replace(self._snapshot, **changes)

    def _update(self, **changes: Any) -> None:
        self._change(**changes)
        self._throttle.request()

    def _got(self, part: str) -> None:
        self._session.report_success(part)
        if part in self._snapshot.failing:
            self._change(failing=self._snapshot.failing - {part})

    async def _retry_forever(
        self, feed: Callable[[], Awaitable[None]], what: str = "", part: str = ""
    ) -> None:
        """Run a feed to its end, restarting it after errors.

        ``what`` is its display name, for data that users see; ``part`` is the data's name for health
        checks, if they use it.
        """

        def on_wait(error: RequestError, _delay_s: float) -> None:
            if what:
                self._session.report_failure(what, error)
            if part:
                self._update(failing=self._snapshot.failing | {part})
            if what == STATUS and isinstance(error, NotFound) and not self._was_gone:
                self._was_gone = True
                self._on_gone()

        try:
            await retrying(feed, LASTING, sleep=self._pause, on_wait=on_wait)
        except asyncio.CancelledError as error:
            raise error.with_traceback(None)  # noqa: B904 – its frames would hold what was read

    async def _tick(self) -> None:
        """Publish every second, since ages and elapsed times change even if nothing else does."""
        while True:
            await self._session.clock.sleep(1.0)
            self._throttle.request()

    async def _watch_status(self) -> None:
        jobs = self._session.client.jobs
        status = ""
        async for job in jobs.watch(self._job.project_id, self._job.id, interval_s=self._status_interval_s):
            self._got(STATUS)
            self._change(job=job, seen_at=self._session.clock.now())
            self._was_gone = False
            self._throttle.request()
            if job.current_status != status:
                status = job.current_status
                await self._read_queue()

    async def _read_queue(self) -> None:
        """Read the status history; only organization admins may, and not every server has it."""
        with suppress(ErrorAnswer, InvalidAnswer):
            self._change(queue=await self._session.client.jobs.queue_context(self._job.id))
        self._update(history_known=True)

    async def _read_price(self) -> None:
        self._change(price_per_minute=price_of(self._job, {}, self._prices))
        listed = await listed_prices(self._session.client)
        self._update(price_per_minute=price_of(self._job, listed, self._prices))

    async def _poll_bill(self) -> None:
        while (created_at := self._job.created_at) is not None:
            now = self._session.clock.now()
            self._update(bill=await read_bill(self._session.client, created_at, now))
            await self._pause(BILL_INTERVAL_S)

    async def _read_log(self) -> None:
        await self._log.read(self._job)

    def _restart_progress(self) -> None:
        """Start over because the log is read again; findings stay until then."""
        self._known_before = self._snapshot.findings
        self._progress = ProgressFold(patterns=self._patterns)

    def _fill_gap(self, gap: LogGap) -> None:
        self._progress.forget(gap)

    def _take_log(self, entries: Iterable[LogEntry]) -> None:
        self._got(LOG)
        if self._recorded is not None:
            entries = ()
        elif self._read_recorded is not None:
            since_ns = (self._session.clock.now() - FIRST_RECORDED).timestamp() * NS_PER_S
            entries = [entry for entry in entries if stamp_ns(entry) >= since_ns]
        self._progress.add(entries)
        self._throttle.request()

    @property
    def _recorded_is_read(self) -> bool:
        return self._recorded is not None and self._log.newest_is_read

    async def _follow_recorded(self, read: Callable[[], Awaitable[ProgressSnapshot]]) -> None:
        """Read the progress at the moment that is shown, again when it has moved on."""
        clock = self._session.clock
        while True:
            at = clock.now()
            try:
                self._recorded = await read()
            except ConfigurationError:
                self._change(failing=self._snapshot.failing | {LOG})
            self._throttle.request()
            while clock.now() == at:
                await clock.sleep(RECORDED_INTERVAL_S)

    def _log_ended(self, job: TrainingJob) -> None:
        self._update(job=job)

    async def _poll_metrics(self) -> None:
        """Follow the metrics; restart for a new time range, keeping the old data until new data arrives."""
        while True:
            self._span_changed.clear()
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(
                    self._retry_forever(self._follow_metrics, METRICS, part=METRICS)
                )
                await sleep_or_event(self._session.clock, self._span_changed, REREAD_S)
                following.cancel()

    async def _follow_metrics(self) -> None:
        job, now = self._job, self._session.clock.now()
        end = job.updated_at if job.is_finished and job.updated_at else now
        start = end - self._span
        if job.created_at is not None:
            start = max(start, job.created_at)
        step_s = self._step_s(end - start)
        new_step_s = min(step_s, HEALTH_STEP_S)
        fold = MetricsFold(max_points=self._most_points + NEW_POINTS)
        since = start
        if has_many_nodes(job):
            await self._read_metrics(fold, start, end, step_s)
            since = max(start, end - LATE_SAMPLES)
        stream = self._session.client.metrics.follow(
            job.project_id,
            job.id,
            start=since,
            step_s=step_s,
            new_step_s=new_step_s,
            interval_s=max(
                self._metrics_interval_s, new_step_s if has_many_nodes(self._job) else new_step_s / 2
            ),
        )
        async for answer in stream:
            await asyncio.to_thread(fold.fold, answer, step_s)
            self._got(METRICS)
            self._metrics = fold
            now, shown = self._session.clock.now(), fold.snapshot
            if shown.at is not None:
                self._offset.saw(shown.at, now.timestamp(), shown.step_s)
            self._update(metrics_at=now, clock_ahead_s=self._offset.ahead_s)
            if not self._job.is_finished:
                await self._take_health_metrics(answer, start if step_s == new_step_s else now)
            step_s = new_step_s

    async def _read_metrics(self, fold: MetricsFold, start: datetime, end: datetime, step_s: int) -> None:
        """Read the metrics of many nodes in parts. Unless some are shown already, show the newest first."""
        client, job = self._session.client, self._job
        if not self._metrics.snapshot.nodes:
            async for answer in metrics_in_parts(client, job, max(start, end - NEWEST_SAMPLES), end, step_s):
                await asyncio.to_thread(self._metrics.fold, answer, step_s)
                self._throttle.request()
        async for answer in metrics_in_parts(client, job, start, end, step_s):
            await asyncio.to_thread(fold.fold, answer, step_s)
            self._got(METRICS)
            if not job.is_finished:
                await asyncio.to_thread(self._health_metrics.take, answer, end)

    async def _take_health_metrics(self, answer: JobMetrics, start: datetime) -> None:
        """Take the samples for health checks; before the first, read those before ``start``."""
        now = self._session.clock.now()
        if self._snapshot.health_metrics is None:
            await self._health_metrics.read_until(start, now)
        read = await asyncio.to_thread(self._health_metrics.take, answer, now)
        self._update(health_metrics=read, health_metrics_at=now)

    @property
    def _most_points(self) -> int:
        return MAX_METRIC_POINTS_MANY_NODES if has_many_nodes(self._job) else MAX_METRIC_POINTS

    def _step_s(self, whole: timedelta) -> int:
        """Return a sampling interval fine enough for the window without too many samples in total."""
        wanted_s = min(whole, self._shown).total_seconds() / POINTS_ACROSS
        return max(MIN_METRIC_STEP_S, int(wanted_s), int(whole.total_seconds() / self._most_points))

    async def _read_kept_losses(self, found: tuple[Checkpoint, ...]) -> None:
        """Read the trainer's record of the newest checkpoint again if there are new checkpoints."""
        if found != self._kept_of:
            losses = await kept_losses_of(self._session.client, self._job, found)
            self._kept_of = found
            self._update(kept_losses=losses)

    async def _poll_checkpoints(self) -> None:
        """List the checkpoints while they may change: until the job has ended and all are uploaded."""
        while True:
            try:
                listed = tuple(
                    await self._session.client.checkpoints.list(self._job.project_id, self._job.id)
                )
            except NotFound as error:
                if error.code != NOT_RECORDED:
                    raise
                self._update(checkpoints_recorded=False)
                return
            self._session.report_success(CHECKPOINTS)
            self._update(checkpoints=listed)
            await self._read_kept_losses(listed)
            uploading = any(checkpoint.sync_status == "SYNCING" for checkpoint in listed)
            is_final = self._job.is_finished and not uploading
            await self._pause(None if is_final else self._checkpoints_interval_s)

    async def _pause(self, pause_s: float | None) -> None:
        await sleep_or_event(self._session.clock, self._wake, pause_s)
