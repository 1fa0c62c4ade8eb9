"""A job's metrics: the history once, then what is new, until the job ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime
from functools import partial

from api_client.clock import Clock
from api_client.errors import BadRequest
from api_client.models import JobMetrics, MetricSample, NodeSeries, TrainingJob
from api_client.streams.patience import patiently
from api_client.streams.records import MS_PER_S, FetchJob

FetchMetrics = Callable[..., Awaitable[JobMetrics]]
"""``fetch(start_ms=…, end_ms=…, step_s=…)``, each of which may be None: the server's default."""

OVERLAP_S = 120.0
"""Samples may arrive late: every increment starts this long before the newest one known."""

OVERLAP_STEPS = 3
AFTER_THE_END_S = 300.0
"""A finished job's window ends this long after its last change: skew and stragglers have room."""


async def follow_metrics(
    fetch: FetchMetrics,
    fetch_job: FetchJob,
    *,
    clock: Clock,
    start_ms: int | None,
    step_s: int | None,
    interval_s: float,
) -> AsyncIterator[JobMetrics]:
    """The metrics from ``start_ms`` on, then increments every ``interval_s`` seconds until the job's end.

    Samples may repeat: every increment overlaps the one before. Without ``start_ms`` the server chooses
    the window, which it anchors on the end of a finished job. One more increment follows the job's end.
    Outlives errors that may pass; raises the other RequestErrors.
    """
    job = await patiently(fetch_job, clock=clock)
    metrics = await _history(fetch, job, clock=clock, start_ms=start_ms, step_s=step_s)
    yield metrics
    newest = newest_sample(metrics)
    is_last = job.is_finished
    while not is_last:
        await clock.sleep(interval_s)
        is_last = job.is_finished
        since_ms = start_ms if newest is None else _increment_start_ms(newest, step_s)
        call = partial(fetch, start_ms=since_ms, end_ms=None, step_s=step_s)
        metrics = await patiently(call, clock=clock)
        newest = _later(newest, newest_sample(metrics))
        yield metrics
        if not is_last:
            told = metrics.training_job
            job = told if told is not None else await patiently(fetch_job, clock=clock)


async def _history(
    fetch: FetchMetrics, job: TrainingJob, *, clock: Clock, start_ms: int | None, step_s: int | None
) -> JobMetrics:
    end_ms: int | None = None
    if start_ms is not None and job.is_finished and job.updated_at is not None:
        end_ms = int((job.updated_at.timestamp() + AFTER_THE_END_S) * MS_PER_S)
    try:
        call = partial(fetch, start_ms=start_ms, end_ms=end_ms, step_s=step_s)
        return await patiently(call, clock=clock)
    except BadRequest:
        # The longest window is not published (API facts, 2.2): let the server choose before giving up.
        if start_ms is None:
            raise
        return await patiently(partial(fetch, start_ms=None, end_ms=None, step_s=None), clock=clock)


def _increment_start_ms(newest: datetime, step_s: int | None) -> int:
    overlap_s = max(OVERLAP_S, OVERLAP_STEPS * (step_s or 0))
    return max(0, int((newest.timestamp() - overlap_s) * MS_PER_S))


def newest_sample(metrics: JobMetrics) -> datetime | None:
    """The time of the newest sample of any node, or None without samples."""
    stamps = (sample.timestamp for samples in _all_series(metrics) for sample in samples)
    return max(stamps, default=None)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return max(one, other)


def _all_series(metrics: JobMetrics) -> Iterator[list[MetricSample]]:
    nodes: list[NodeSeries] = [metrics, *(node.metrics for node in metrics.per_node_metrics)]
    for node in nodes:
        yield from node.gpu_utilization.values()
        yield from node.gpu_memory_usage_bytes.values()
        yield node.cpu_usage
        yield node.cpu_memory_usage_bytes
