"""The metrics for health checks: one sample a minute in the last hour, fewer before, whatever charts show.

Home, the job screen and ``bt-tui health`` all use them, so that their results agree.
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
from api_client.streams.metrics import LONGEST_HISTORY_MS, metric_windows
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot

HEALTH_STEP_S = 60
INCREMENT = timedelta(minutes=5)
"""Samples may be late, so every poll requests this much known time again."""

LONGEST_HISTORY = timedelta(milliseconds=LONGEST_HISTORY_MS)

FINE_POINTS = 90
"""Maximum number of points per series for the last hour, however long a run is watched."""
FEW_NODES = 8


def has_many_nodes(job: TrainingJob) -> bool:
    return (job.node_count or 1) > FEW_NODES


def history_points(job: TrainingJob) -> int:
    return 60 if has_many_nodes(job) else 240


def health_metrics_fold(job: TrainingJob) -> MetricsFold:
    return MetricsFold(max_points=FINE_POINTS + history_points(job), thins=True)


PART_SAMPLES = 20_000
"""Samples of GPUs in an answer. Parsing more stalls keys even in another thread, since it holds the GIL."""


async def metrics_in_parts(
    client: TrainingClient, job: TrainingJob, start: datetime, end: datetime, step_s: int
) -> AsyncIterator[JobMetrics]:
    """Yield the samples of a time range in time order; those between two parts may be repeated.

    Few nodes are one part, unless the range is longer than a server accepts. Raises RequestError.
    """
    # a node with eight GPUs has sixteen series of them
    width_ms = step_s * MS_PER_S * (PART_SAMPLES // (16 * (job.node_count or 1)) + 1)
    for start_ms, end_ms in metric_windows(epoch_ms(start), epoch_ms(end)):
        for part_ms in range(start_ms, end_ms, width_ms):
            yield await client.metrics.get(
                job.project_id,
                job.id,
                start_ms=part_ms,
                end_ms=min(end_ms, part_ms + width_ms),
                step_s=step_s,
            )


class HealthMetrics:
    """The metrics of one job: each ``poll`` reads what is new, the first one all of it."""

    def __init__(self, client: TrainingClient, job: TrainingJob) -> None:
        self._client = client
        self._job = job
        self._fold = health_metrics_fold(job)

    @property
    def snapshot(self) -> MetricsSnapshot:
        return self._fold.snapshot

    async def poll(self, now: datetime) -> MetricsSnapshot:
        """Read the new samples and return all; of a job that has ended, those that the server chooses.

        Raises RequestError.
        """
        if self._job.is_finished:
            answer = await self._client.metrics.get(self._job.project_id, self._job.id)
            return await asyncio.to_thread(MetricsFold().fold, answer)
        newest = self.snapshot.at
        if newest is None:
            # a little more than four times the window for detecting growth (`growth_window_s`)
            last_hour = now - timedelta(minutes=65)
            await self._read_history(last_hour)
            await self._read(last_hour, now + CLOCK_SKEW, HEALTH_STEP_S)
        else:
            # From the newest sample on, not from now: the clocks may differ by any time.
            start = datetime.fromtimestamp(newest, UTC) - INCREMENT
            end = min(max(now + CLOCK_SKEW, start + 2 * INCREMENT), start + timedelta(days=6))
            await self._read(start, end, HEALTH_STEP_S)
        return await asyncio.to_thread(self._fold.make_snapshot)

    async def _read_history(self, until: datetime) -> None:
        """Read fewer samples of the time before the last hour."""
        created_at = self._job.created_at
        if created_at is not None and created_at < until:
            start = max(created_at, until - LONGEST_HISTORY)
            coarse_s = int((until - start).total_seconds() / history_points(self._job)) + 1
            await self._read(start, until, max(HEALTH_STEP_S, coarse_s))

    async def _read(self, start: datetime, end: datetime, step_s: int) -> None:
        async for answer in metrics_in_parts(self._client, self._job, start, end, step_s):
            await asyncio.to_thread(self._fold.add, answer, step_s)
