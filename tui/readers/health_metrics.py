"""The metrics for health checks: one sample a minute in the last hour, fewer before.

Home, the job screen and ``bt-tui health`` all use these metrics, so that their findings agree. The metrics do
not depend on the time range of charts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from api_client.client import TrainingClient
from api_client.clock import epoch_ms
from api_client.models import JobMetrics, TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import MS_PER_S
from api_client.streams.metrics import MAX_HISTORY_MS, metric_windows
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot

HEALTH_STEP_S = 60
OVERLAP = timedelta(minutes=5)
"""Every poll reads this time before the newest sample again, because samples may be late."""

LONGEST_HISTORY = timedelta(milliseconds=MAX_HISTORY_MS)
"""Maximum age of the samples to read."""

LAST_HOUR_POINTS = 90
"""Maximum number of points per series for the last hour, however long a run is watched."""
FEW_NODES = 8
"""Metrics of jobs with more nodes are read in parts, with fewer samples."""


def has_many_nodes(job: TrainingJob) -> bool:
    return (job.node_count or 1) > FEW_NODES


def history_points(job: TrainingJob) -> int:
    """Return the maximum number of points per series for the time before the last hour."""
    return 60 if has_many_nodes(job) else 240


def health_metrics_fold(job: TrainingJob) -> MetricsFold:
    return MetricsFold(max_points=LAST_HOUR_POINTS + history_points(job), keeps_first_per_step=True)


PART_SAMPLES = 20_000
"""GPU samples per request. Parsing more would delay keys, even in a thread, because it holds the GIL."""


async def metrics_in_parts(
    client: TrainingClient, job: TrainingJob, start: datetime, end: datetime, step_s: int
) -> AsyncIterator[JobMetrics]:
    """Yield the samples of a time range in parts, in time order; a part may repeat the last sample.

    With few nodes, there is one part, unless the range is longer than a server accepts. Raises RequestError.
    """
    # a node has 16 series: two for each of eight GPUs
    part_length_ms = step_s * MS_PER_S * (PART_SAMPLES // (16 * (job.node_count or 1)) + 1)
    for start_ms, end_ms in metric_windows(epoch_ms(start), epoch_ms(end)):
        for part_ms in range(start_ms, end_ms, part_length_ms):
            yield await client.metrics.get(
                job.project_id,
                job.id,
                start_ms=part_ms,
                end_ms=min(end_ms, part_ms + part_length_ms),
                step_s=step_s,
            )


class HealthMetrics:
    """The metrics of one job: the first ``poll`` reads all samples, later polls read the new samples."""

    def __init__(self, client: TrainingClient, job: TrainingJob) -> None:
        self._client = client
        self._job = job
        self._fold = health_metrics_fold(job)

    @property
    def snapshot(self) -> MetricsSnapshot:
        return self._fold.snapshot

    async def poll(self, now: datetime) -> MetricsSnapshot:
        """Read the new samples, and return all; for a finished job, read the server's default time range.

        Raises RequestError.
        """
        if self._job.is_finished:
            response = await self._client.metrics.get(self._job.project_id, self._job.id)
            return await asyncio.to_thread(MetricsFold().fold, response)
        newest_s = self.snapshot.at
        if newest_s is None:
            # a little more than four times the window for detecting growth (`growth_window_s`)
            last_hour = now - timedelta(minutes=65)
            await self._read_history(last_hour)
            await self._read(last_hour, now + CLOCK_SKEW, HEALTH_STEP_S)
        else:
            # Relative to the newest sample, not to now, because the server's clock may differ from ours.
            start = datetime.fromtimestamp(newest_s, UTC) - OVERLAP
            end = min(max(now + CLOCK_SKEW, start + 2 * OVERLAP), start + timedelta(days=6))
            await self._read(start, end, HEALTH_STEP_S)
        return await asyncio.to_thread(self._fold.make_snapshot)

    async def _read_history(self, until: datetime) -> None:
        """Read the samples before ``until``, at longer intervals."""
        created_at = self._job.created_at
        if created_at is not None and created_at < until:
            start = max(created_at, until - LONGEST_HISTORY)
            coarse_step_s = int((until - start).total_seconds() / history_points(self._job)) + 1
            await self._read(start, until, max(HEALTH_STEP_S, coarse_step_s))

    async def _read(self, start: datetime, end: datetime, step_s: int) -> None:
        async for response in metrics_in_parts(self._client, self._job, start, end, step_s):
            await asyncio.to_thread(self._fold.add, response, step_s)
