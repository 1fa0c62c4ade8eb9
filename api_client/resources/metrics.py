"""Metrics of training jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial

from api_client import routes
from api_client.clock import Clock, epoch_ms
from api_client.http.retry import RetryPolicy
from api_client.http.transport import Transport
from api_client.models import JobMetrics
from api_client.resources.jobs import Jobs
from api_client.streams.metrics import follow_metrics, metrics_query


class Metrics:
    """Metric samples. Every method raises RequestError."""

    def __init__(self, transport: Transport, jobs: Jobs, clock: Clock) -> None:
        self._transport = transport
        self._jobs = jobs
        self._clock = clock

    async def get(
        self,
        project_id: str,
        job_id: str,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        step_s: int | None = None,
        retry: RetryPolicy | None = None,
    ) -> JobMetrics:
        """Return the samples of a time range in epoch milliseconds, one every ``step_s`` seconds.

        The server chooses values that are None; without any bounds it anchors the range to a finished
        job's end.
        """
        query = metrics_query(start_ms, end_ms, step_s)
        return await self._transport.request(routes.JOB_METRICS, project_id, job_id, query=query, retry=retry)

    def follow(
        self,
        project_id: str,
        job_id: str,
        *,
        start: datetime | None = None,
        step_s: int | None = None,
        new_step_s: int | None = None,
        interval_s: float = 5.0,
    ) -> AsyncIterator[JobMetrics]:
        """Yield the samples from ``start`` (default: the job's start), then new ones, until the job ends.

        Samples may be repeated; merge them by their timestamps. ``new_step_s`` is the step of the new ones,
        by default ``step_s``.
        """
        policy = self._transport.retry.for_polling()
        return follow_metrics(
            partial(self._transport.request, routes.JOB_METRICS, project_id, job_id, retry=policy),
            partial(self._jobs.get, project_id, job_id, retry=policy),
            clock=self._clock,
            start_ms=None if start is None else epoch_ms(start),
            step_s=step_s,
            new_step_s=new_step_s,
            interval_s=interval_s,
        )
