"""Log lines of training jobs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import TypeAdapter

from api_client.clock import Clock
from api_client.http.retry import RetryPolicy
from api_client.http.transport import Transport
from api_client.models import LogRecord, LogsPage, TrainingJob
from api_client.models.logs import LogBatch, LogEnd, LogEntry, LogGap
from api_client.resources.jobs import Jobs, job_route
from api_client.streams.follow import FollowOptions
from api_client.streams.logs import fill_gap, follow_logs, read_logs
from api_client.streams.retry import readable

LOG_PAGE = TypeAdapter(LogsPage)
MAX_PAGE = 1000
"""Most lines that the API answers at once (API facts, 2.2)."""

CLOCK_SKEW = timedelta(minutes=5)
"""How far before a job's creation its first line may be stamped: nodes have clocks of their own."""

FUTURE = timedelta(days=1)
"""How far the stamps of the newest lines may be after our own present, whatever clocks are wrong."""

PARTS_IN_FLIGHT = 3
"""So many parts of a long history are read at once: more are slower, not faster (measured)."""

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
        end_ms: int | None,
        direction: Literal["asc", "desc"] = "asc",
        limit: int = MAX_PAGE,
        min_level: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> list[LogRecord]:
        """Up to ``limit`` (1–1000) lines of a window of epoch milliseconds, at most 7 days long.

        Without ``end_ms`` the window ends at the server's present. A ``min_level`` also leaves out lines
        that have no level. This is the bare route: it says nothing about lines beyond the limit; ``follow``
        and ``history`` miss none.
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
        """Every line from ``start`` (default: the job's beginning) until the job's end, each once.

        Ends with a LogEnd. Lines may arrive a minute after the job's end: the stream tells of the end at
        once (``LogBatch.finished_job``) and then waits ``drain_s`` seconds for them; unless given, 65, or
        more for a log whose lines were seen to come later than that. A job that ended minutes ago is not
        waited for, nor is one whose server says that its log is complete (our emulator does). ``retry``
        replaces the client's policy for the stream's own requests.
        """
        policy = (retry or self._transport.retry).for_polling()

        async def fetch_job() -> TrainingJob:
            return await self._jobs.get(project_id, job_id, retry=policy)

        if start is None:
            start = start_of(await readable(fetch_job, clock=self._clock), self._clock)
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
        """Every line stamped from ``start`` up to but without ``end``, each once, however long that is.

        Without an ``end`` all there is. With ``newest_first`` the batches go back in time; each batch is in
        time order all the same. Parts of a long stretch are read at once, and given in order.
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
        """Try a gap of a stream again: its lines that were not delivered before, in time order.

        What still cannot be had is a LogGap among them; that may be all of it.
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
