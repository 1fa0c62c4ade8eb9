"""Stream a job's metrics: the history once, then increments, until the job ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any

from api_client.clock import Clock, epoch_ms
from api_client.errors import BadRequest
from api_client.http.retry import ENDLESS, retrying
from api_client.models import JobMetrics, NodeMetrics, NodeSeries, StorageMetrics, TrainingJob
from api_client.models.logs import MS_PER_S, FetchJob
from api_client.models.metrics import STORAGE, series_of
from api_client.streams.reader import Window, windows

FetchMetrics = Callable[..., Awaitable[JobMetrics]]
"""Requests metrics: ``await fetch(query=metrics_query(…))``."""

OVERLAP_S = 120.0
"""Increments start this long before the newest known sample, because samples may arrive late.

Only one increment in ``FULL_OVERLAP_INTERVAL_S`` seconds has this overlap; other increments have a shorter
overlap.
"""

FULL_OVERLAP_INTERVAL_S = 40.0  # not more often: with 64 nodes, the whole overlap takes megabytes


MAX_HISTORY_MS = 366 * 24 * 3600 * MS_PER_S
"""Maximum age of requested samples, so that a job with wrong times does not cause thousands of requests."""


def metric_windows(start_ms: int, end_ms: int) -> list[Window]:
    """Split a time range into ascending ranges that a server accepts; empty if it ends before it starts."""
    return windows(max(start_ms, end_ms - MAX_HISTORY_MS), end_ms)


def metrics_query(start_ms: int | None, end_ms: int | None, step_s: int | None) -> dict[str, int | None]:
    """Return the query of the metrics route; the server chooses the values that are None."""
    return {"start_epoch_millis": start_ms, "end_epoch_millis": end_ms, "step_seconds": step_s}


async def follow_metrics(
    fetch: FetchMetrics,
    fetch_job: FetchJob,
    *,
    clock: Clock,
    start_ms: int | None,
    step_s: int | None,
    interval_s: float,
    new_step_s: int | None = None,
) -> AsyncIterator[JobMetrics]:
    """Yield the metrics from ``start_ms`` on, then increments every ``interval_s`` seconds until the end.

    Samples of the history are ``step_s`` apart, samples of increments ``new_step_s`` if given. Samples may be
    repeated, because increments overlap. Without ``start_ms``, the history begins with the job. After the
    job's end, one more increment is yielded. Transient errors are retried; raises the other RequestErrors.
    """
    new_step_s = new_step_s or step_s
    job = await retrying(fetch_job, ENDLESS, sleep=clock.sleep)
    if start_ms is None:
        start_ms = epoch_ms(job.earliest_time(clock.now()))
    metrics, start_ms = await _history(fetch, job, clock=clock, start_ms=start_ms, step_s=step_s)
    overlap = _Overlap(clock, new_step_s)
    overlap.observe(metrics)
    yield metrics
    del metrics  # free megabytes that the consumer may no longer use, before the next increment
    is_last = job.is_finished
    while not is_last:
        await clock.sleep(interval_s)
        is_last = job.is_finished
        increment_start_ms = overlap.next_start_ms(start_ms, is_last=is_last)
        call = partial(fetch, query=metrics_query(increment_start_ms, None, new_step_s))
        metrics = await retrying(call, ENDLESS, sleep=clock.sleep)
        overlap.observe(metrics)
        job_in_response = metrics.training_job
        yield metrics
        del metrics
        if not is_last:
            job = (
                job_in_response
                if job_in_response is not None
                else await retrying(fetch_job, ENDLESS, sleep=clock.sleep)
            )


async def _history(
    fetch: FetchMetrics, job: TrainingJob, *, clock: Clock, start_ms: int, step_s: int | None
) -> tuple[JobMetrics, int]:
    """Return the metrics up to now, or to the job's end, and the start of the last window read.

    The last window of a running job has no end bound, because the server's clock may be ahead of ours.
    """
    end_ms: int | None = None
    if job.is_finished and job.updated_at is not None:
        # Five minutes past the job's last change, for clock skew and late samples.
        end_ms = int((job.updated_at.timestamp() + 300.0) * MS_PER_S)
    ranges = metric_windows(start_ms, end_ms or epoch_ms(clock.now())) or [(start_ms, start_ms)]
    history = JobMetrics()
    for window_start_ms, window_end_ms in ranges:
        until_ms = end_ms if window_end_ms == ranges[-1][1] else window_end_ms
        try:
            call = partial(fetch, query=metrics_query(window_start_ms, until_ms, step_s))
            history = merge_metrics(history, await retrying(call, ENDLESS, sleep=clock.sleep))
        except BadRequest:
            # The time range may be too long for this server (its limit is not published): let the server
            # choose the range.
            call = partial(fetch, query=metrics_query(None, None, None))
            return await retrying(call, ENDLESS, sleep=clock.sleep), ranges[-1][0]
    return history, ranges[-1][0]


def merge_metrics(earlier: Any, later: Any) -> Any:
    """Merge the metrics of two time ranges: concatenate their series; of other values, the later wins."""
    if earlier is None or later is None:
        return later if earlier is None else earlier
    if isinstance(later, dict):
        return {**earlier, **{name: merge_metrics(earlier.get(name), value) for name, value in later.items()}}
    if isinstance(later, JobMetrics | NodeSeries | StorageMetrics):
        merged_fields = {
            name: merge_metrics(getattr(earlier, name), getattr(later, name))
            for name in type(later).model_fields
        }
        return later.model_copy(update=merged_fields)
    if not isinstance(later, list):
        return later
    if not any(isinstance(item, NodeMetrics) for item in (*earlier[:1], *later[:1])):
        return [*earlier, *later]
    nodes = [{node.node_id: node.metrics for node in per_node} for per_node in (earlier, later)]
    return [NodeMetrics(node_id=name, metrics=series) for name, series in merge_metrics(*nodes).items()]


class _Overlap:
    """Computes the start of each increment: some time before the newest sample, to fetch late samples."""

    def __init__(self, clock: Clock, step_s: int | None) -> None:
        self._clock = clock
        three_steps_s = 3 * (step_s or 0)
        self._full_overlap_s = max(OVERLAP_S, three_steps_s)
        # Other increments start this long before the newest sample of the series that lags most.
        self._short_overlap_s = max(15.0, three_steps_s)
        self._last_full_overlap_s = clock.monotonic()
        self._newest_s: float | None = None
        self._laggard_newest_s = 0.0

    def observe(self, metrics: JobMetrics) -> None:
        newest_times_s = [time.timestamp() for time in _newest_sample_times(metrics)]
        if newest_times_s:
            newest_s = max(newest_times_s) if self._newest_s is None else max(self._newest_s, *newest_times_s)
            current_s = [time_s for time_s in newest_times_s if time_s >= newest_s - self._full_overlap_s]
            self._newest_s, self._laggard_newest_s = newest_s, min(current_s, default=newest_s)

    def next_start_ms(self, start_ms: int, *, is_last: bool) -> int:
        """Return the start of the next increment in epoch milliseconds; ``start_ms`` before the first sample.

        The last increment has the whole overlap, because no later increment can find late samples.
        """
        if self._newest_s is None:
            return start_ms
        full_start_s = self._newest_s - self._full_overlap_s
        now_s = self._clock.monotonic()
        if not is_last and now_s - self._last_full_overlap_s < FULL_OVERLAP_INTERVAL_S:
            return max(0, int(max(full_start_s, self._laggard_newest_s - self._short_overlap_s) * MS_PER_S))
        self._last_full_overlap_s = now_s
        return max(0, int(full_start_s * MS_PER_S))


def _newest_sample_times(metrics: JobMetrics) -> Iterator[datetime]:
    """Yield the time of the newest sample of each series of GPUs and CPUs."""
    for node in (metrics, *(node.metrics for node in metrics.per_node_metrics)):
        for path, samples in series_of(node):
            if samples and path[0] != STORAGE:
                yield max(map(attrgetter("timestamp"), samples))
