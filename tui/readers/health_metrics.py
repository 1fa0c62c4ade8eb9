"""Metrics for health checks: one sample a minute in the last hour, fewer before.

They do not depend on the time range of the charts. Home, the job screen and ``bt-tui health`` all use them,
so that their results agree.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from api_client.client import TrainingClient
from api_client.clock import epoch_ms
from api_client.models import JobMetrics, TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot

SPAN = timedelta(minutes=65)
"""A little more than four times the window for detecting a filling disk (``HealthRules.disk_window_s``)."""
STEP_S = 60
INCREMENT = timedelta(minutes=5)
"""Samples may be late, so every poll requests this much known time again."""

FINE_POINTS = 90
"""Maximum number of points per series for the last hour, however long a run is watched."""
HISTORY_POINTS = 240
"""Maximum number of points per series for the time before the last hour."""
HISTORY_POINTS_OF_MANY = 60
"""The same for a job with more than ``FEW_NODES`` nodes."""
FEW_NODES = 8


def has_many_nodes(job: TrainingJob) -> bool:
    return (job.node_count or 1) > FEW_NODES


def history_points(job: TrainingJob) -> int:
    return HISTORY_POINTS_OF_MANY if has_many_nodes(job) else HISTORY_POINTS


def health_metrics_fold(job: TrainingJob) -> MetricsFold:
    return MetricsFold(max_points=FINE_POINTS + history_points(job), thins=True)


class HealthMetrics:
    """The metrics of one job: each ``poll`` reads what is new, the first one all of it.

    Where they are followed for charts, ``take`` their samples instead, and ``read_until`` those before.
    """

    def __init__(self, client: TrainingClient, job: TrainingJob) -> None:
        self._client = client
        self._job = job
        self._fold = health_metrics_fold(job)
        self._has_earlier = False

    @property
    def snapshot(self) -> MetricsSnapshot:
        return self._fold.snapshot

    async def poll(self, now: datetime) -> MetricsSnapshot:
        """Read the new samples and return all. Raises RequestError."""
        newest = self.snapshot.at
        if newest is None:
            await self.read_until(now + CLOCK_SKEW, now)
        else:
            span = INCREMENT + timedelta(seconds=max(0.0, now.timestamp() - newest))
            await self._read(now - span, now + CLOCK_SKEW, STEP_S)
        return self.snapshot

    async def read_until(self, end: datetime, now: datetime) -> None:
        """Read the samples from the job's creation to ``end``, those before the last hour only once."""
        last_hour = now - SPAN
        created_at = self._job.created_at
        if not self._has_earlier and created_at is not None and created_at < last_hour:
            coarse_s = int((last_hour - created_at).total_seconds() / history_points(self._job)) + 1
            await self._read(created_at, last_hour, max(STEP_S, coarse_s))
        self._has_earlier = True
        if last_hour < end:
            await self._read(last_hour, end, STEP_S)

    def take(self, answer: JobMetrics, now: datetime) -> MetricsSnapshot:
        """Add the last hour of samples that were read for charts."""
        return self._fold.fold(answer, STEP_S, since_s=(now - SPAN).timestamp())

    async def _read(self, start: datetime, end: datetime, step_s: int) -> None:
        job = self._job
        answer = await self._client.metrics.get(
            job.project_id, job.id, start_ms=epoch_ms(start), end_ms=epoch_ms(end), step_s=step_s
        )
        await asyncio.to_thread(self._fold.fold, answer, step_s)
