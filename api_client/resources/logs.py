"""Log lines of training jobs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import TypeAdapter

from api_client.clock import Clock
from api_client.http.retry import ENDLESS, RetryPolicy, retrying
from api_client.http.transport import Transport
from api_client.models import LogRecord, LogsPage, TrainingJob
from api_client.models.logs import LogBatch, LogEnd, LogEntry, LogGap
from api_client.resources.jobs import Jobs, job_route
from api_client.streams.follow import FollowOptions
from api_client.streams.logs import fill_gap, follow_logs, read_logs

LOG_PAGE = TypeAdapter(LogsPage)
MAX_PAGE = 1000
"""Maximum number of lines that the API returns at once (API facts, 2.2)."""

FUTURE = timedelta(days=1)
"""Maximum time by which the newest lines may be ahead of our clock, in case clocks are wrong."""

PARTS_IN_FLIGHT = 3
"""Parts of a long history read concurrently: more are slower, not faster (measured)."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def epoch_ms(moment: datetime) -> int:
    """Convert to milliseconds since the epoch, rounded down. Raises ValueError without a timezone."""
    if moment.tzinfo is None:
        raise ValueError("a datetime without time zone")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


class Logs:
    """Log lines. Every method raises RequestError."""

    def __init__(self, transport: Transport, jobs: Jobs, clock: Clock) -> None:
        self._transport = transport
        self._jobs = jobs
        self._clock = clock

    async def page(
        self,
        project_id: str,
        job_id: str,
        *,
        start_ms: int,
        end_ms: int | None,
        direction: Literal["asc", "desc"] = "asc",
        limit: int = MAX_PAGE,
        min_level: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> list[LogRecord]:
        """Return up to ``limit`` (1–1000) lines of a time range in epoch milliseconds, up to 7 days long.

        Without ``end_ms`` the range ends at the server's current time. A ``min_level`` also leaves out
        lines that have no level. This is the bare route and does not report lines beyond the limit;
        ``follow`` and ``history`` miss none.
        """
        answer = await self._answer(
            project_id,
            job_id,
            retry=retry,
            start_epoch_millis=start_ms,
            end_epoch_millis=end_ms,
            direction=direction,
            limit=limit,
            min_level=min_level,
        )
        return answer["logs"] or []

    async def _answer(
        self, project_id: str, job_id: str, *, retry: RetryPolicy | None, **query: str | int | None
    ) -> LogsPage:
        path = job_route(project_id, job_id, "logs")
        return await self._transport.request("GET", path, LOG_PAGE, query=query, retry=retry)

    async def follow(
        self,
        project_id: str,
        job_id: str,
        *,
        start: datetime | None = None,
        drain_s: float | None = None,
        retry: RetryPolicy | None = None,
    ) -> AsyncGenerator[LogBatch | LogEnd, None]:
        """Yield every line from ``start`` (default: the job's beginning) until the job's end, each once.

        The stream ends with a LogEnd. Lines may arrive a minute after the job's end: the stream reports
        the end at once (``LogBatch.finished_job``) and then waits ``drain_s`` seconds for late lines; by
        default 65, or more for a log whose lines were seen to arrive later than that. It does not wait
        for a job that ended minutes ago, or if the server says that the log is complete (our emulator
        does). ``retry`` replaces the client's policy for the stream's own requests.
        """
        policy = (retry or self._transport.retry).for_polling()

        async def fetch_job() -> TrainingJob:
            return await self._jobs.get(project_id, job_id, retry=policy)

        if start is None:
            patient = replace(ENDLESS, max_attempts=1)  # reports an outage, but waits for a maintenance page
            job = await retrying(fetch_job, patient, sleep=self._clock.sleep)
            start = job.earliest_time(self._clock.now())
        fetch = _Window(self, project_id, job_id, retry or self._transport.retry)
        options = FollowOptions(drain_s=drain_s, in_flight=PARTS_IN_FLIGHT)
        stream = follow_logs(
            fetch,
            fetch_job,
            clock=self._clock,
            start_ms=epoch_ms(start),
            options=options,
            is_complete=lambda: fetch.is_complete,
        )
        async with aclosing(stream) as items:
            async for item in items:
                yield item

    async def history(
        self,
        project_id: str,
        job_id: str,
        *,
        start: datetime,
        end: datetime | None = None,
        newest_first: bool = False,
        retry: RetryPolicy | None = None,
    ) -> AsyncGenerator[LogBatch, None]:
        """Yield every line from ``start`` up to ``end`` (exclusive), each once, for any time range.

        Without an ``end``, yields all later lines. With ``newest_first`` the batches go back in time, but
        each batch is in time order. Parts of a long time range are read concurrently and yielded in
        order.
        """
        stream = read_logs(
            _Window(self, project_id, job_id, retry or self._transport.retry),
            clock=self._clock,
            start_ms=epoch_ms(start),
            end_ms=epoch_ms(end if end is not None else self._clock.now() + FUTURE),
            newest_first=newest_first,
            in_flight=PARTS_IN_FLIGHT,
        )
        async with aclosing(stream) as batches:
            async for batch in batches:
                yield batch

    async def fill(
        self, project_id: str, job_id: str, gap: LogGap, *, retry: RetryPolicy | None = None
    ) -> tuple[LogEntry, ...]:
        """Retry a gap of a stream: return its lines that were not delivered before, in time order.

        Lines that are still not available are represented by a LogGap, which may be the whole range.
        """
        fetch = _Window(self, project_id, job_id, retry or self._transport.retry)
        return await fill_gap(fetch, gap, clock=self._clock)


class _Window:
    """The page route of one job, as the streams call it.

    ``is_complete``: the last answer said that no line will be added to this log.
    """

    def __init__(self, logs: Logs, project_id: str, job_id: str, retry: RetryPolicy) -> None:
        self.is_complete = False
        self._logs = logs
        self._project_id = project_id
        self._job_id = job_id
        self._retry = retry.for_polling()

    async def __call__(
        self, *, start_ms: int, end_ms: int | None, direction: Literal["asc", "desc"], limit: int
    ) -> list[LogRecord]:
        answer = await self._logs._answer(
            self._project_id,
            self._job_id,
            retry=self._retry,
            start_epoch_millis=start_ms,
            end_epoch_millis=end_ms,
            direction=direction,
            limit=limit,
        )
        self.is_complete = answer.get("complete", False)
        return answer["logs"] or []
