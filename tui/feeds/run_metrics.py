"""Follow the metrics of one run for charts, in the time range that they show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from api_client.clock import Clock
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.readers.health_metrics import HEALTH_STEP_S, has_many_nodes, metrics_in_parts
from tui.readers.watcher import RunWatcher

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


class RunMetrics:
    """The samples of the last ``span``, or of the whole run; ``take`` is called after every answer.

    ``interval_s`` is the minimum polling interval; it is longer for slow sampling: half its interval, or all
    of it with many nodes.
    """

    def __init__(
        self,
        watcher: RunWatcher,
        span: timedelta | None,
        *,
        interval_s: float,
        take: Callable[[], object],
    ) -> None:
        self._watcher = watcher
        self._span = self._shown = span
        self._interval_s = interval_s
        self._take = take
        self._fold = MetricsFold()

    @property
    def snapshot(self) -> MetricsSnapshot:
        return self._fold.snapshot

    def set_span(self, span: timedelta | None, shown: timedelta | None) -> None:
        """Read another time range, of which charts show a part; the next ``follow`` does."""
        self._span, self._shown = span, shown

    def release(self) -> None:
        """Let go of the samples, at the end."""
        del self._fold, self._watcher

    async def follow(self) -> None:
        """Read the time range and what comes after it, until cancelled. Raises RequestError.

        What was read before stays until the first new answer.
        """
        client, job, now = self._watcher.client, self._watcher.job, self._clock.now()
        end = job.updated_at if job.is_finished and job.updated_at else now
        begin = job.created_at or job.earliest_time(now)
        start = begin if self._span is None else max(begin, end - self._span)
        is_large = has_many_nodes(job)
        step_s = self._step_s(end - start)
        new_step_s = min(step_s, HEALTH_STEP_S)
        fold = MetricsFold(max_points=self._most_points + NEW_POINTS)
        since = start
        if is_large:
            await self._read_parts(fold, start, end, step_s)
            since = max(start, end - LATE_SAMPLES)
        stream = client.metrics.follow(
            job.project_id,
            job.id,
            start=since,
            step_s=step_s,
            new_step_s=new_step_s,
            interval_s=max(self._interval_s, new_step_s if is_large else new_step_s / 2),
        )
        async for answer in stream:
            await asyncio.to_thread(fold.fold, answer, step_s)
            self._fold = fold
            self._watcher.note_clock(fold.snapshot, fold.snapshot.step_s)
            self._watcher.change(metrics_at=self._clock.now())
            self._take()
            step_s = new_step_s

    @property
    def _clock(self) -> Clock:
        return self._watcher.client.clock

    async def _read_parts(self, fold: MetricsFold, start: datetime, end: datetime, step_s: int) -> None:
        """Read the metrics of many nodes in parts. Unless some are shown already, show the newest first."""
        client, job = self._watcher.client, self._watcher.job
        if not self.snapshot.nodes:
            async for answer in metrics_in_parts(client, job, max(start, end - NEWEST_SAMPLES), end, step_s):
                await asyncio.to_thread(self._fold.fold, answer, step_s)
                self._take()
        async for answer in metrics_in_parts(client, job, start, end, step_s):
            await asyncio.to_thread(fold.fold, answer, step_s)
            self._take()

    @property
    def _most_points(self) -> int:
        return MAX_METRIC_POINTS_MANY_NODES if has_many_nodes(self._watcher.job) else MAX_METRIC_POINTS

    def _step_s(self, whole: timedelta) -> int:
        """Return a sampling interval fine enough for the window without too many samples in total."""
        wanted_s = min(whole, self._shown or whole).total_seconds() / POINTS_ACROSS
        return max(MIN_METRIC_STEP_S, int(wanted_s), int(whole.total_seconds() / self._most_points))
