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


class RunFeed:
    """Publishes a ``RunSnapshot`` after changes, and every part of the log, until cancelled.

    ``on_gone`` is called once if the server does not know the job; polling continues, since the response
    may come from a proxy. Charts show the metrics of the last ``span``, or of the run. ``findings`` are those
    already known.
    ``recorded_progress`` reads the progress of a recording, whose log is too long to be folded for every
    moment; ``metrics`` are those of the moment, if they are known.
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
        self._moment_read = asyncio.Event()
        """Set once what a moment of a recording is judged by was read; the rest is read after it."""
        if recorded_progress is None:
            self._moment_read.set()
        self._log = RunLog(
            self._watcher,
            fold=self._fold_log,
            publish=self._publish_log,
            before_history=self._moment_read.wait,
        )
        self._metrics = RunMetrics(self._watcher, span, interval_s=self._intervals.metrics_s)
        if metrics is not None:
            self._metrics.snapshot = metrics
            self._watcher.change(metrics_at=session.clock.now())
        self._on_log = on_log
        self._awaits_lines = False
        self._lines_awaited = Pause(session.clock)
        self._charts_awaited = Pause(session.clock)
        self._reread = Pause(session.clock)
        self._read_recorded = recorded_progress
        self._recorded: ProgressSnapshot | None = None
        self._pause = Pause(session.clock)
        self._published_parts = self._first_parts

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._publish_often())
                tasks.create_task(self._check_health())
                tasks.create_task(self._retry_forever(self._watch_status, STATUS))
                tasks.create_task(self._retry_forever(self._log.read, LOG))
                tasks.create_task(self._follow_metrics(tasks))
                tasks.create_task(self._retry_forever(self._poll_health_metrics))
                tasks.create_task(self._retry_forever(self._poll_checkpoints, CHECKPOINTS))
                tasks.create_task(self._retry_forever(self._poll_cost))
                if self._read_recorded is not None:
                    tasks.create_task(self._follow_recorded(self._read_recorded))
        finally:
            for what in (STATUS, LOG, METRICS, CHECKPOINTS):
                self._session.report_success(what)

    def refresh(self) -> None:
        self._pause.end()
        self._reread.end()

    async def retry(self, gap: LogGap, from_ns: int | None = None) -> None:
        """Read a gap of the log again, see ``RunLog.retry``, and publish the result. Raises RequestError."""
        await self._log.retry(gap, from_ns)

    def set_span(self, span: timedelta | None, shown: timedelta | None = None) -> None:
        """Show metrics of the last ``span``, or of the whole run, read again at a suitable resolution.

        ``shown`` is the length of the window if it is only a part of that time range; the resolution is
        then finer.
        """
        self._metrics.set_span(span, shown or span)
        self._reread.end()

    @property
    def _job(self) -> TrainingJob:
        return self._watcher.job

    async def _publish_often(self) -> None:
        """Publish again and again: ages and elapsed times change even if nothing else does."""
        is_published = self._metrics.snapshot.nodes != ()  # another moment is shown once, when it is complete
        while True:
            if not is_published:
                async with self._log.folding:
                    self._publish()
            is_read = self._watcher.snapshot.log_read
            await self._charts_awaited(PUBLISH_INTERVAL_S if is_read else FIRST_PUBLISH_INTERVAL_S)
            self._awaits_lines = is_read
            if is_read:
                # what comes together is painted once
                await self._lines_awaited(0.5)
            is_published = is_read and not self._awaits_lines
            self._awaits_lines = False

    def _publish_log(self, part: LogPart) -> None:
        if part.entries and self._awaits_lines:
            self._awaits_lines = False
            self._publish()
            self._lines_awaited.end()
        self._on_log(part)
        self._note_moment()

    def _publish(self) -> None:
        run = self._watcher.update(
            log_read=self._log.is_read if self._read_recorded is None else self._recorded_is_read,
            metrics=self._metrics.snapshot,
            **({"progress": self._recorded} if self._recorded is not None else {}),
        )
        self._published_parts = self._first_parts
        self._publish_snapshot(run)

    @property
    def _first_parts(self) -> tuple[bool, bool]:
        """True for charts and for progress that is known; the first of each is shown without delay."""
        return bool(self._metrics.snapshot.nodes), self._watcher.progress.lines_read > 0

    async def _check_health(self) -> None:
        clock, checked_at = self._session.clock, -math.inf
        checked_state: tuple[object, ...] = ()
        while True:
            run = self._watcher.snapshot
            state = (run.job.current_status, run.log_read, run.health_metrics is not None, run.failing)
            # check every few seconds, unless there is more to check: problems take minutes to show
            if state != checked_state or clock.monotonic() - checked_at >= 5.0:
                checked_at, checked_state = clock.monotonic(), state
                await self._watcher.check()
                await self._watcher.check_checkpoints()
            await clock.sleep(FIRST_PUBLISH_INTERVAL_S)

    def _got(self, part: str) -> None:
        self._session.report_success(part)
        self._watcher.change(failing=self._watcher.snapshot.failing - {part})
        self._note_moment()
        if self._first_parts != self._published_parts:
            self._charts_awaited.end()

    def _note_moment(self) -> None:
        """Show a moment of a recording as soon as its progress, charts and newest lines are known."""
        run = self._watcher.snapshot
        has_progress = self._recorded_is_read or LOG in run.failing
        has_charts = run.metrics_at is not None or METRICS in run.failing
        if has_progress and has_charts and not self._moment_read.is_set():
            self._moment_read.set()
            self._publish()

    async def _retry_forever(self, feed: Callable[[], Awaitable[None]], what: str = "") -> None:
        """Run a feed to its end, restarting it after errors; ``what`` names the data that users see."""

        def on_wait(error: RequestError, _delay_s: float) -> None:
            if what:
                self._session.report_failure(what, error)
                self._watcher.change(failing=self._watcher.snapshot.failing | {what})
                self._note_moment()
            if what == STATUS and isinstance(error, NotFound) and not self._was_gone:
                self._was_gone = True
                self._on_gone()

        await retrying(feed, LASTING, sleep=self._pause, on_wait=on_wait)

    async def _watch_status(self) -> None:
        updates = self._session.client.jobs.watch(
            self._job.project_id, self._job.id, interval_s=self._intervals.status_s
        )
        status = ""
        async for job in updates:
            self._watcher.change(job=job, seen_at=self._session.clock.now())
            self._got(STATUS)
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
        if self._recorded is not None:
            entries = ()
        elif self._read_recorded is not None:
            # the end of a recorded log shows a step until the whole progress is known
            since_ns = (self._session.clock.now() - timedelta(minutes=1)).timestamp() * NS_PER_S
            entries = [entry for entry in entries if stamp_ns(entry) >= since_ns]
        self._watcher.progress.add(entries)
        self._got(LOG)

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
                self._watcher.change(failing=self._watcher.snapshot.failing | {LOG})
            self._note_moment()
            while clock.now() == at:
                await clock.sleep(RECORDED_INTERVAL_S)

    async def _follow_metrics(self, tasks: asyncio.TaskGroup) -> None:
        """Follow the metrics; restart for a new time range, keeping the old data until new data arrives."""
        if self._watcher.snapshot.metrics_at is not None:
            await self._moment_read.wait()  # those that are known may have fewer samples
        while True:
            # A canceled group within the group would be garbage that only a search finds, with all samples.
            following = tasks.create_task(self._retry_forever(self._take_metrics, METRICS))
            await self._reread(REREAD_S)
            following.cancel()

    async def _take_metrics(self) -> None:
        async for _ in self._metrics.follow():
            self._got(METRICS)

    async def _poll_health_metrics(self) -> None:
        await self._moment_read.wait()
        while not self._job.is_finished:
            await self._watcher.read_health_metrics()
            await self._pause(POLL_EVERY_S if self._read_recorded is None else RECORDED_INTERVAL_S)

    async def _poll_checkpoints(self) -> None:
        """List the checkpoints while they may change: until the job has ended and all are uploaded."""
        while True:
            has_ended = self._job.is_finished  # before: what is stored at the end may be missing otherwise
            await self._watcher.read_checkpoints()
            self._got(CHECKPOINTS)
            await self._moment_read.wait()
            await self._watcher.read_kept_losses()
            run = self._watcher.snapshot
            if not run.checkpoints_recorded:
                return
            uploading = any(checkpoint.sync_status == "SYNCING" for checkpoint in run.checkpoints or ())
            is_final = has_ended and not uploading
            await self._pause(None if is_final else self._intervals.checkpoints_s)


MIN_METRIC_STEP_S = 5
MAX_METRIC_POINTS_MANY_NODES = 480
"""The same for a job with more than ``FEW_NODES`` nodes."""
REREAD_S = 3600.0
"""Interval for reading the samples again, because new ones may be denser than those of the time range."""
NEW_POINTS = int(REREAD_S / MIN_METRIC_STEP_S)
"""Maximum number of samples to keep in addition, so that following drops none of the time range."""


class RunMetrics:
    """The samples of the last ``span``, or of the whole run.

    ``interval_s`` is the minimum polling interval; it is longer for slow sampling: half its interval, or
    two of them with many nodes, whose samples take long to read.
    """

    def __init__(self, watcher: RunWatcher, span: timedelta | None, *, interval_s: float) -> None:
        self._watcher = watcher
        self._span = self._shown = span
        self._interval_s = interval_s
        self.snapshot = MetricsSnapshot()

    def set_span(self, span: timedelta | None, shown: timedelta | None) -> None:
        """Read another time range, of which charts show a part; the next ``follow`` does."""
        self._span, self._shown = span, shown

    async def follow(self) -> AsyncIterator[None]:
        """Read the time range and what comes after it, until cancelled; yield after every answer.

        What was read before stays until the first new answer. Raises RequestError.
        """
        client, job = self._watcher.client, self._watcher.job
        now = client.clock.now()
        end = job.updated_at if job.is_finished and job.updated_at else now
        begin = job.created_at or job.earliest_time(now)
        start = begin if self._span is None else max(begin, end - self._span)
        is_large = has_many_nodes(job)
        step_s = self._step_s(end - start)
        new_step_s = min(step_s, HEALTH_STEP_S)
        fold = MetricsFold(max_points=self._most_points + NEW_POINTS)
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
        async for answer in stream:
            self.snapshot = await asyncio.to_thread(fold.fold, answer, step_s)
            del answer  # of many nodes, a hundred thousand objects for the garbage collector until the next
            self._watcher.note_clock(self.snapshot, self.snapshot.step_s)
            self._watcher.change(metrics_at=client.clock.now())
            yield
            step_s = new_step_s

    async def _read_parts(
        self, fold: MetricsFold, start: datetime, end: datetime, step_s: int
    ) -> AsyncIterator[None]:
        """Read the metrics of many nodes in parts. Unless some are shown already, show the newest first."""
        client, job = self._watcher.client, self._watcher.job
        if not self.snapshot.nodes:
            # show the newest metrics of many nodes first
            newest = MetricsFold()
            async for answer in metrics_in_parts(
                client, job, max(start, end - timedelta(minutes=5)), end, step_s
            ):
                self.snapshot = await asyncio.to_thread(newest.fold, answer, step_s)
                yield
        async for answer in metrics_in_parts(client, job, start, end, step_s):
            await asyncio.to_thread(fold.add, answer, step_s)
            yield

    @property
    def _most_points(self) -> int:
        # samples read per series, which matters if a short window is far in the past
        return MAX_METRIC_POINTS_MANY_NODES if has_many_nodes(self._watcher.job) else 1400

    def _step_s(self, whole: timedelta) -> int:
        """Return a sampling interval fine enough for the window without too many samples in total."""
        # charts do not have more columns
        wanted_s = min(whole, self._shown or whole).total_seconds() / 240
        return max(MIN_METRIC_STEP_S, int(wanted_s), int(whole.total_seconds() / self._most_points))
