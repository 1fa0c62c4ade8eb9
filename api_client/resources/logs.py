"""Log lines of training jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import TypeAdapter

from api_client.clock import Clock
from api_client.http.retry import RetryPolicy
from api_client.http.transport import Transport
from api_client.models import LogRecord, LogsPage, TrainingJob
from api_client.resources.jobs import Jobs, job_route
from api_client.streams.logs import follow_logs, read_logs
from api_client.streams.records import LogBatch, LogEnd

LOG_PAGE = TypeAdapter(LogsPage)
MAX_PAGE = 1000
"""Most lines that the API answers at once (API facts, 2.2)."""

CLOCK_SKEW = timedelta(minutes=5)
"""How far before a job's creation its first line may be stamped: nodes have clocks of their own."""

UNKNOWN_START = timedelta(days=7)
"""How far back to read for a job whose creation time the server does not tell."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def epoch_ms(moment: datetime) -> int:
    """Milliseconds since the epoch, rounded down. Raises ValueError for a datetime without zone."""
    if moment.tzinfo is None:
        raise ValueError("a datetime without time zone")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def start_of(job: TrainingJob, clock: Clock) -> datetime:
    """From when on a job may have lines and samples."""
    if job.created_at is None:
        return clock.now() - UNKNOWN_START
    return job.created_at - CLOCK_SKEW


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
        end_ms: int,
        direction: Literal["asc", "desc"] = "asc",
        limit: int = MAX_PAGE,
        min_level: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> list[LogRecord]:
        """Up to ``limit`` (1–1000) lines of a window of epoch milliseconds, at most 7 days long.

        A ``min_level`` also leaves out lines that have no level. This is the bare route: it says nothing
        about lines beyond the limit; ``follow`` and ``history`` miss none.
        """
        query = {
            "start_epoch_millis": start_ms,
            "end_epoch_millis": end_ms,
            "direction": direction,
            "limit": limit,
            "min_level": min_level,
        }
        path = job_route(project_id, job_id, "logs")
        answer = await self._transport.request("GET", path, LOG_PAGE, query=query, retry=retry)
        return answer["logs"] or []

    async def follow(
        self,
        project_id: str,
        job_id: str,
        *,
        start: datetime | None = None,
        retry: RetryPolicy | None = None,
    ) -> AsyncIterator[LogBatch | LogEnd]:
        """Every line from ``start`` (default: the job's beginning) until the job's end, each once.

        Ends with a LogEnd. ``retry`` replaces the client's policy for the stream's own requests.
        """

        async def fetch_job() -> TrainingJob:
            return await self._jobs.get(project_id, job_id, retry=retry)

        if start is None:
            start = start_of(await fetch_job(), self._clock)
        fetch = _Window(self, project_id, job_id, retry)
        async for item in follow_logs(fetch, fetch_job, clock=self._clock, start_ms=epoch_ms(start)):
            yield item

    async def history(
        self,
        project_id: str,
        job_id: str,
        *,
        start: datetime,
        end: datetime,
        newest_first: bool = False,
        retry: RetryPolicy | None = None,
    ) -> AsyncIterator[LogBatch]:
        """Every line stamped from ``start`` up to but without ``end``, each once, however long that is.

        With ``newest_first`` the batches go back in time; each batch is in time order all the same.
        """
        fetch = _Window(self, project_id, job_id, retry)
        async for batch in read_logs(
            fetch,
            clock=self._clock,
            start_ms=epoch_ms(start),
            end_ms=epoch_ms(end),
            newest_first=newest_first,
        ):
            yield batch


class _Window:
    """The page route of one job, as the streams call it."""

    def __init__(self, logs: Logs, project_id: str, job_id: str, retry: RetryPolicy | None) -> None:
        self._logs = logs
        self._project_id = project_id
        self._job_id = job_id
        self._retry = retry

    async def __call__(
        self, *, start_ms: int, end_ms: int, direction: Literal["asc", "desc"], limit: int
    ) -> list[LogRecord]:
        return await self._logs.page(
            self._project_id,
            self._job_id,
            start_ms=start_ms,
            end_ms=end_ms,
            direction=direction,
            limit=limit,
            retry=self._retry,
        )
