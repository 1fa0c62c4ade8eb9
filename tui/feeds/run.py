"""The job screen's feed: all parts of one run, as they change."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from api_client.errors import ConfigurationError, NotFound, RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S, LogEntry, LogGap, stamp_ns
from tui.analysis.connection import CHECKPOINTS, LOG, METRICS, STATUS, ClockOffset
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import STALE_AFTER_S, RunSnapshot
from tui.feeds.run_log import LogPart, RunLog
from tui.feeds.throttle import Pause
from tui.readers.billing import BILL_INTERVAL_S
from tui.readers.health_metrics import HEALTH_STEP_S, has_many_nodes, metrics_in_parts
from tui.readers.session import Session
from tui.readers.watcher import POLL_EVERY_S, RunWatcher
from tui.settings.model import RefreshSettings
from tui.settings.runs import DEFAULT, RunSettings

FIRST_PUBLISH_INTERVAL_S, PUBLISH_INTERVAL_S = 0.5, 0.75
"""Interval between snapshots until the log has been read, and from then on."""
RECORDED_INTERVAL_S = 1.0
"""Interval for checking if the shown time of a recording has changed."""


class RunFeed:
    """Publishes a ``RunSnapshot`` after changes, and every part of the log, until cancelled.

    ``on_gone`` is called once if the server has no such job; polling continues, since the response may come
    from a proxy. Charts show the metrics of the last ``span``; if None, of the whole run. ``findings`` are
    from an earlier check.

    For a recording, ``recorded_progress`` reads the progress at the shown time, since folding the log for
    each time would take too long; ``metrics`` are the metrics at the shown time, if known.
    """

    def __init__(
        self,
        session: Session,
        job: TrainingJob,
        *,
        publish: Callable[[RunSnapshot], object],
        on_log: Callable[[LogPart], object],
        on_gone: Callable[[], object],
        span: timedelta | None,
        settings: RunSettings = DEFAULT,
        refresh: RefreshSettings | None = None,
        findings: tuple[HealthFinding, ...] = (),
        recorded_progress: Callable[[], Awaitable[ProgressSnapshot]] | None = None,
        metrics: MetricsSnapshot | None = None,
    ) -> None:
        self._session = session
        self._publish_snapshot = publish
        self._on_gone = on_gone
        self._was_gone = False
        self._intervals = refresh or RefreshSettings()
        self._watcher = RunWatcher(
            session.client, job, settings, findings=findings, clock_offset=ClockOffset()
        )
        # stale after three missed status updates
        self._watcher.change(stale_after_s=max(STALE_AFTER_S, 3 * self._intervals.status_s))
        self._essentials_read = asyncio.Event()
        """Set once progress, charts and newest lines at a recording's shown time have been read.

        All other data is read after that. For a live run, it is set from the start.
        """
        if recorded_progress is None:
            self._essentials_read.set()
        self._log = RunLog(
            self._watcher,
            fold=self._fold_log,
            publish=self._publish_log,
            before_history=self._essentials_read.wait,
        )
        self._metrics = RunMetrics(self._watcher, span, interval_s=self._intervals.metrics_s)
        if metrics is not None:
            self._metrics.snapshot = metrics
            self._watcher.change(metrics_at=session.clock.now())
        self._on_log = on_log
        self._awaits_lines = False
        self._next_lines_pause = Pause(session.clock)
        self._publish_pause = Pause(session.clock)
        self._reread_pause = Pause(session.clock)
        self._read_recorded_progress = recorded_progress
        self._recorded_progress: ProgressSnapshot | None = None
        self._pause = Pause(session.clock)
        self._published_parts = self._known_parts

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._publish_repeatedly())
                tasks.create_task(self._check_health())
                tasks.create_task(self._retry_forever(self._watch_status, STATUS))
                tasks.create_task(self._retry_forever(self._log.read, LOG))
                tasks.create_task(self._follow_metrics(tasks))
                tasks.create_task(self._retry_forever(self._poll_health_metrics))
                tasks.create_task(self._retry_forever(self._poll_checkpoints, CHECKPOINTS))
                tasks.create_task(self._retry_forever(self._poll_cost))
                if self._read_recorded_progress is not None:
                    tasks.create_task(self._follow_recorded(self._read_recorded_progress))
        finally:
            for resource in (STATUS, LOG, METRICS, CHECKPOINTS):
                self._session.report_success(resource)

    def refresh(self) -> None:
        self._pause.end()
        self._reread_pause.end()

    async def retry(self, gap: LogGap, from_ns: int | None = None) -> None:
        """Read a gap of the log again, see ``RunLog.retry``, and publish the result. Raises RequestError."""
        await self._log.retry(gap, from_ns)

    def set_span(self, span: timedelta | None, window: timedelta | None = None) -> None:
        """Read and show the metrics of the last ``span`` (None: the whole run) at a suitable resolution.

        ``window`` is the length of the time range that the charts show, if shorter than ``span``; the
        resolution is then finer.
        """
        self._metrics.set_span(span, window or span)
        self._reread_pause.end()

    async def _publish_repeatedly(self) -> None:
        """Publish at intervals, since ages and elapsed times change even if nothing else does."""
        # Publish a recording with known metrics only when all data of the new time has been read.
        is_published = self._metrics.snapshot.nodes != ()
        while True:
            if not is_published:
                async with self._log.fold_lock:
                    self._publish()
            is_read = self._watcher.snapshot.log_read
            await self._publish_pause(PUBLISH_INTERVAL_S if is_read else FIRST_PUBLISH_INTERVAL_S)
            self._awaits_lines = is_read
            if is_read:
                # publish together with the next lines, if they arrive soon, so that both are painted once
                await self._next_lines_pause(0.5)
            is_published = is_read and not self._awaits_lines
            self._awaits_lines = False

    def _publish_log(self, part: LogPart) -> None:
        if part.entries and self._awaits_lines:
            self._awaits_lines = False
            self._publish()
            self._next_lines_pause.end()
        self._on_log(part)
        self._publish_shown_time()

    def _publish(self) -> None:
        run = self._watcher.update(
            log_read=self._log.is_read if self._read_recorded_progress is None else self._recorded_is_read,
            metrics=self._metrics.snapshot,
            **({"progress": self._recorded_progress} if self._recorded_progress is not None else {}),
        )
        self._published_parts = self._known_parts
        self._publish_snapshot(run)

    @property
    def _known_parts(self) -> tuple[bool, bool]:
        """Whether charts and whether progress are known; the first data of each is published at once."""
        return bool(self._metrics.snapshot.nodes), self._watcher.progress.lines_read > 0

    async def _check_health(self) -> None:
        clock, checked_at_s = self._session.clock, -math.inf
        checked_state: tuple[object, ...] = ()
        while True:
            run = self._watcher.snapshot
            state = (run.job.current_status, run.log_read, run.health_metrics is not None, run.failing)
            # Problems develop over minutes, so check only every few seconds, and if the state has changed.
            if state != checked_state or clock.monotonic() - checked_at_s >= 5.0:
                checked_at_s, checked_state = clock.monotonic(), state
                await self._watcher.check()
                await self._watcher.check_checkpoints()
            await clock.sleep(FIRST_PUBLISH_INTERVAL_S)

    def _report_success(self, resource: str) -> None:
        self._session.report_success(resource)
        self._watcher.change(failing=self._watcher.snapshot.failing - {resource})
        self._publish_shown_time()
        if self._known_parts != self._published_parts:
            self._publish_pause.end()

    def _publish_shown_time(self) -> None:
        """Publish the data of a recording's shown time once progress, charts and newest lines are known."""
        run = self._watcher.snapshot
        has_progress = self._recorded_is_read or LOG in run.failing
        has_charts = run.metrics_at is not None or METRICS in run.failing
        if has_progress and has_charts and not self._essentials_read.is_set():
            self._essentials_read.set()
            self._publish()

    async def _retry_forever(self, read: Callable[[], Awaitable[None]], resource: str = "") -> None:
        """Await ``read()``, again after each error; ``resource`` is the display name of the data it reads."""

        def on_wait(error: RequestError, _delay_s: float) -> None:
            if resource:
                self._session.report_failure(resource, error)
                self._watcher.change(failing=self._watcher.snapshot.failing | {resource})
                self._publish_shown_time()
            if resource == STATUS and isinstance(error, NotFound) and not self._was_gone:
                self._was_gone = True
                self._on_gone()

        await retrying(read, LASTING, sleep=self._pause, on_wait=on_wait)

    async def _watch_status(self) -> None:
        job = self._watcher.job
        updates = self._session.client.jobs.watch(job.project_id, job.id, interval_s=self._intervals.status_s)
        status = ""
        async for job in updates:
            self._watcher.change(job=job, seen_at=self._session.clock.now())
            self._report_success(STATUS)
            self._was_gone = False
            if job.current_status != status:
                status = job.current_status
                await self._watcher.read_history()

    async def _poll_cost(self) -> None:
        await self._watcher.read_price()
        while True:
            await self._watcher.read_bill()
            await self._pause(BILL_INTERVAL_S)

    def _fold_log(self, entries: Sequence[LogEntry]) -> None:
        if self._recorded_progress is not None:
            entries = ()
        elif self._read_recorded_progress is not None:
            # the last minute of a recorded log suffices to show a step until the progress has been read
            since_ns = (self._session.clock.now() - timedelta(minutes=1)).timestamp() * NS_PER_S
            entries = [entry for entry in entries if stamp_ns(entry) >= since_ns]
        self._watcher.progress.add(entries)
        self._report_success(LOG)

    @property
    def _recorded_is_read(self) -> bool:
        return self._recorded_progress is not None and self._log.newest_is_read

    async def _follow_recorded(self, read: Callable[[], Awaitable[ProgressSnapshot]]) -> None:
        """Read the progress at a recording's shown time, and again whenever the shown time has changed."""
        clock = self._session.clock
        while True:
            shown_at = clock.now()
            try:
                self._recorded_progress = await read()
            except ConfigurationError:
                self._watcher.change(failing=self._watcher.snapshot.failing | {LOG})
            self._publish_shown_time()
            while clock.now() == shown_at:
                await clock.sleep(RECORDED_INTERVAL_S)

    async def _follow_metrics(self, tasks: asyncio.TaskGroup) -> None:
        """Follow the metrics; restart for a new time range, keeping the old data until new data arrives."""
        if self._watcher.snapshot.metrics_at is not None:
            await self._essentials_read.wait()  # until then, the known metrics are shown
        while True:
            # No nested task group: after a cancel, its reference cycle would keep all samples in memory until
            # the garbage collector runs.
            metrics_task = tasks.create_task(self._retry_forever(self._read_metrics, METRICS))
            await self._reread_pause(REREAD_INTERVAL_S)
            metrics_task.cancel()

    async def _read_metrics(self) -> None:
        async for _ in self._metrics.follow():
            self._report_success(METRICS)

    async def _poll_health_metrics(self) -> None:
        await self._essentials_read.wait()
        while not self._watcher.job.is_finished:
            await self._watcher.read_health_metrics()
            await self._pause(POLL_EVERY_S if self._read_recorded_progress is None else RECORDED_INTERVAL_S)

    async def _poll_checkpoints(self) -> None:
        """List the checkpoints while they may change: until the job has ended and all are uploaded."""
        while True:
            # Decide before listing: otherwise, a checkpoint stored just before the end would be missed.
            has_ended = self._watcher.job.is_finished
            await self._watcher.read_checkpoints()
            self._report_success(CHECKPOINTS)
            await self._essentials_read.wait()
            await self._watcher.read_kept_losses()
            run = self._watcher.snapshot
            if not run.checkpoints_recorded:
                return
            is_uploading = any(checkpoint.sync_status == "SYNCING" for checkpoint in run.checkpoints or ())
            is_final = has_ended and not is_uploading
            await self._pause(None if is_final else self._intervals.checkpoints_s)


MIN_METRIC_STEP_S = 5
"""Shortest sampling interval to request."""
MAX_METRIC_POINTS_MANY_NODES = 480
"""Maximum number of samples to read per series of a job with more than ``FEW_NODES`` nodes."""
REREAD_INTERVAL_S = 3600.0
"""Interval for reading the whole time range again, because new samples may be denser than older ones."""
NEW_POINTS = int(REREAD_INTERVAL_S / MIN_METRIC_STEP_S)
"""Number of new samples to keep per series in addition to the samples of the time range."""


class RunMetrics:
    """The metrics of the last ``span``; if None, of the whole run.

    The metrics are polled every ``interval_s``, but at most twice per sampling interval; with many nodes,
    whose samples take long to read, at most once per two sampling intervals.
    """

    def __init__(self, watcher: RunWatcher, span: timedelta | None, *, interval_s: float) -> None:
        self._watcher = watcher
        self._span = self._window = span
        self._interval_s = interval_s
        self.snapshot = MetricsSnapshot()

    def set_span(self, span: timedelta | None, window: timedelta | None) -> None:
        """Set another time range for the next ``follow``; charts show a range of the length ``window``."""
        self._span, self._window = span, window

    async def follow(self) -> AsyncIterator[None]:
        """Read the samples of the time range, then new samples until cancelled; yield after every response.

        The previous snapshot is kept until the first response. Raises RequestError.
        """
        client, job = self._watcher.client, self._watcher.job
        now = client.clock.now()
        end = job.updated_at if job.is_finished and job.updated_at else now
        begin = job.created_at or job.earliest_time(now)
        start = begin if self._span is None else max(begin, end - self._span)
        is_large = has_many_nodes(job)
        step_s = self._sampling_step_s(end - start)
        new_step_s = min(step_s, HEALTH_STEP_S)
        fold = MetricsFold(max_points=self._max_points + NEW_POINTS)
        since = start
        if is_large:
            async for _ in self._read_parts(fold, start, end, step_s):
                yield
            # read the end of the history again, because samples may be late
            since = max(start, end - timedelta(minutes=2))
        stream = client.metrics.follow(
            job.project_id,
            job.id,
            start=since,
            step_s=step_s,
            new_step_s=new_step_s,
            interval_s=max(self._interval_s, new_step_s * (2 if is_large else 0.5)),
        )
        async for response in stream:
            self.snapshot = await asyncio.to_thread(fold.fold, response, step_s)
            # A response with many nodes has 100,000 objects: free them before waiting for the next response.
            del response
            self._watcher.update_clock_offset(self.snapshot, self.snapshot.step_s)
            self._watcher.change(metrics_at=client.clock.now())
            yield
            step_s = new_step_s

    async def _read_parts(
        self, fold: MetricsFold, start: datetime, end: datetime, step_s: int
    ) -> AsyncIterator[None]:
        """Read the metrics of many nodes in parts; if none are shown yet, first the last five minutes."""
        client, job = self._watcher.client, self._watcher.job
        if not self.snapshot.nodes:
            newest_fold = MetricsFold()
            async for response in metrics_in_parts(
                client, job, max(start, end - timedelta(minutes=5)), end, step_s
            ):
                self.snapshot = await asyncio.to_thread(newest_fold.fold, response, step_s)
                yield
        async for response in metrics_in_parts(client, job, start, end, step_s):
            await asyncio.to_thread(fold.add, response, step_s)
            yield

    @property
    def _max_points(self) -> int:
        """Number of samples to read per series; it limits the resolution of a short window in the past."""
        return MAX_METRIC_POINTS_MANY_NODES if has_many_nodes(self._watcher.job) else 1400

    def _sampling_step_s(self, time_range: timedelta) -> int:
        """Return the sampling interval: fine enough for the charts, with at most ``_max_points`` samples."""
        # charts have at most 240 columns
        window_step_s = min(time_range, self._window or time_range).total_seconds() / 240
        return max(MIN_METRIC_STEP_S, int(window_step_s), int(time_range.total_seconds() / self._max_points))
