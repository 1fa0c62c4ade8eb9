"""Log lines and metrics of training jobs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from api_client import routes
from api_client.clock import epoch_ms
from api_client.http.retry import RetryPolicy
from api_client.models import JobMetrics, LogRecord
from api_client.models.logs import FetchPage, LogBatch, LogEnd, LogEntry, LogGap, LogLine
from api_client.resources import Resource
from api_client.streams.follow import Follower
from api_client.streams.logs import LogIncrements, fill_gap, read_logs
from api_client.streams.metrics import follow_metrics, metrics_query
from api_client.streams.pages import MAX_PAGE_LINES, Direction, PageSource, log_query

FUTURE = timedelta(days=1)  # clocks may be wrong: the newest timestamps may be ahead of our time


class Logs(Resource):
    """Log lines, streamed without loss or as single pages. Every method raises RequestError."""

    async def page(
        self,
        project_id: str,
        job_id: str,
        *,
        start_ms: int,
        end_ms: int | None,
        direction: Direction = "asc",
        limit: int = MAX_PAGE_LINES,
        min_level: str | None = None,
    ) -> list[LogRecord]:
        """Return up to ``limit`` (1–1000) lines of a time range in epoch milliseconds, up to 7 days long.

        Without ``end_ms`` the range ends at the server's current time. A ``min_level`` also leaves out lines
        that have no level. This is a single request, which does not report if there are more lines than
        ``limit``; ``follow`` and ``history`` return all lines.
        """
        query = log_query(start_ms, end_ms, direction, limit, min_level)
        return (await self._transport.request(routes.JOB_LOGS, project_id, job_id, query=query))["logs"] or []

    def follow(
        self,
        project_id: str,
        job_id: str,
        *,
        start: datetime | None = None,
        newest_first: bool = False,
        drain_s: float | None = None,
    ) -> AsyncGenerator[LogBatch | LogEnd, None]:
        """Yield every line from ``start`` (default: the job's beginning) until the job's end, each once.

        With ``newest_first``, the batches of the history (lines logged before now; ``caught_up`` is false) go
        back in time, each of them in time order; then an empty batch and new lines follow. If the history
        takes long, batches of new lines (``caught_up`` is true) come in between.

        The stream ends with a LogEnd. Lines may arrive a minute after the job's end: the stream reports the
        end at once (``LogBatch.finished_job``) and then waits ``drain_s`` seconds for late lines; by default
        65, or more if lines of this log have arrived later than that. It does not wait for a job that ended
        minutes ago, or if the server declares that the log is complete (as the emulator does).
        """
        follower = Follower(
            self._fetch(project_id, job_id),
            partial(
                self._transport.request,
                routes.JOB,
                project_id,
                job_id,
                retry=self._transport.retry.for_polling(),
            ),
            clock=self._transport.clock,
            start_ms=None if start is None else epoch_ms(start),
            newest_first=newest_first,
            drain_s=drain_s,
        )
        return follower.stream()

    def history(
        self,
        project_id: str,
        job_id: str,
        *,
        start: datetime,
        end: datetime | None = None,
        newest_first: bool = False,
    ) -> AsyncGenerator[LogBatch, None]:
        """Yield every line from ``start`` up to ``end`` (exclusive), each once, for any time range.

        Without an ``end``, yields all later lines. With ``newest_first`` the batches go back in time, but
        each batch is in time order. Parts of a long time range are read concurrently and yielded in order.
        """
        return read_logs(
            PageSource(self._fetch(project_id, job_id), clock=self._transport.clock),
            start_ms=epoch_ms(start),
            end_ms=epoch_ms(end if end is not None else self._transport.clock.now() + FUTURE),
            newest_first=newest_first,
        )

    def increments(
        self, project_id: str, job_id: str, *, start: datetime, known: Iterable[LogLine] = ()
    ) -> LogIncrements:
        """Return a reader whose ``poll`` yields new lines, for a log that is polled rarely.

        ``known`` are the lines from ``start`` on that the caller has already.
        """
        fetch = self._fetch(project_id, job_id)
        return LogIncrements(fetch, clock=self._transport.clock, start_ms=epoch_ms(start), known=known)

    async def fill(self, project_id: str, job_id: str, gap: LogGap) -> tuple[LogEntry, ...]:
        """Retry a gap of a stream: return its lines that were not delivered before, in time order.

        Lines that are still not available are represented by a LogGap, which may be the whole range.
        """
        return await fill_gap(self._fetch(project_id, job_id), gap, clock=self._transport.clock)

    def _fetch(self, project_id: str, job_id: str) -> FetchPage:
        # Retry a response that is not the API's once in the transport, because it reports retries to
        # listeners, unlike the stream.
        policy = replace(self._transport.retry.for_polling(), max_invalid_responses=2)
        return partial(self._transport.request, routes.JOB_LOGS, project_id, job_id, retry=policy)


class Metrics(Resource):
    """Metric samples. Every method raises RequestError."""

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

        The server chooses values that are None; without any bounds, the range of a finished
        job ends when the job ended.
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
        """Yield the samples from ``start`` (default: the job's start), then new samples, until the job ends.

        Samples may be repeated; merge them by their timestamps. ``new_step_s`` is the step of new samples,
        by default ``step_s``.
        """
        policy = self._transport.retry.for_polling()
        return follow_metrics(
            partial(self._transport.request, routes.JOB_METRICS, project_id, job_id, retry=policy),
            partial(self._transport.request, routes.JOB, project_id, job_id, retry=policy),
            clock=self._transport.clock,
            start_ms=None if start is None else epoch_ms(start),
            step_s=step_s,
            new_step_s=new_step_s,
            interval_s=interval_s,
        )
