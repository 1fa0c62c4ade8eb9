"""The last hour of a run's metrics, to judge its health by, whatever stretch of time the charts show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from api_client.models import TrainingJob
from tui.feeds.session import Session
from tui.insight.node_metrics import MetricsFold, MetricsSnapshot

VITALS_SPAN = timedelta(minutes=65)
"""Four times the window in which a disk is seen to fill (``HealthRules.disk_window_s``), and a little."""
VITALS_STEP_S = 60
VITALS_INTERVAL_S = 20.0
VITALS_POINTS = 90
"""Points kept of each series: no more than the span, however long a run is watched."""


async def follow_vitals(
    session: Session, job: TrainingJob, take: Callable[[MetricsSnapshot], object]
) -> None:
    """Call ``take`` with every new snapshot until the job ends. Raises RequestError.

    One request in twenty seconds beside those of the charts. A finished job has no health: nothing is asked.
    """
    if job.is_finished:
        return
    start = session.clock.now() - VITALS_SPAN
    if job.created_at is not None:
        start = max(start, job.created_at)
    fold = MetricsFold(max_points=VITALS_POINTS)
    stream = session.client.metrics.follow(
        job.project_id, job.id, start=start, step_s=VITALS_STEP_S, interval_s=VITALS_INTERVAL_S
    )
    async for answer in stream:
        take(await asyncio.to_thread(fold.fold, answer))
