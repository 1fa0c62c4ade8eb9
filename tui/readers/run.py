"""Read one run: its log, checkpoints, history, and the metrics for health checks.

Those are one sample a minute in the last hour, fewer before, whatever time range charts show. Home, the job
screen and ``bt-tui health`` all use them, so that their results agree.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from api_client.client import TrainingClient
from api_client.clock import epoch_ms
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.models import Checkpoint, JobMetrics, QueueContext, TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import MS_PER_S, LogEntry, LogGap
from api_client.streams.metrics import LONGEST_HISTORY_MS, metric_windows
from tui.analysis import connection
from tui.analysis.cost import price_of
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.analysis.progress.fold import MAX_POINTS, ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.run.snapshot import RunSnapshot

METRICS_PART = "metrics"
"""Key of the metrics in ``LoadedRun.unread``."""
LINES_AT_ONCE = 25
"""Lines to fold per turn of the event loop: about 1 ms, since a key takes several turns."""

OnPart = Callable[[float | None, int], object]
"""Called with the fraction of the log read (0–1, None if unknown) and the number of lines."""


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run, with the number of lines and of unreadable time ranges in its log.

    ``unread`` maps parts other than the log that could not be read to the error; the run lacks them.
    """

    run: RunSnapshot
    line_count: int
    gap_count: int
    unread: Mapping[str, RequestError] = field(default_factory=dict)


async def checkpoints_of(client: TrainingClient, job: TrainingJob) -> tuple[Checkpoint, ...] | None:
    try:
        return tuple(await client.checkpoints.list(job.project_id, job.id))
    except (ErrorAnswer, InvalidAnswer) as error:
        if error.retryable:
            raise
        return None


async def history_of(client: TrainingClient, job: TrainingJob) -> QueueContext | None:
    """Return a job's status changes; None if they cannot be read, which not everybody may."""
    try:
        return await client.jobs.queue_context(job.id)
    except (ErrorAnswer, InvalidAnswer):
        return None


async def fetch_health_metrics(client: TrainingClient, job: TrainingJob, now: datetime) -> MetricsSnapshot:
    """Return the metrics for health checks (for a finished job: the server's choice). Raises RequestError."""
    if not job.is_finished:
        return await HealthMetrics(client, job).poll(now)
    answer = await client.metrics.get(job.project_id, job.id)
    return await asyncio.to_thread(MetricsFold().fold, answer)


async def read_run(
    client: TrainingClient,
    job: TrainingJob,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    max_points: int = MAX_POINTS,
    with_health_metrics: bool = True,
    stream: str | None = None,
    patterns: Sequence[ProgressPattern] = (),
    own_prices: Mapping[str, float] | None = None,
    on_part: OnPart | None = None,
) -> LoadedRun:
    """Read a run's log from ``since`` (default: its beginning) to now, and all other data about it.

    ``patterns`` parse the lines of custom trainers, ``own_prices`` take precedence over the listed
    ``prices``. ``stream`` selects the source of progress (``ProgressFold.choose``). The metrics are read
    if ``with_health_metrics``, or if nothing else gives the number of nodes. Raises RequestError; parts
    that a server does not have are left out. If the metrics fail, the log is still returned, with the error
    in ``LoadedRun.unread``.
    """
    now = client.clock.now()
    fold = ProgressFold(max_points=max_points, patterns=patterns)
    fold.choose(stream)
    wants_health_metrics = with_health_metrics or not job.node_count
    start = since or job.earliest_time(now)
    log = asyncio.create_task(read_log(client, job, fold, start, on_part=on_part))
    listing = asyncio.create_task(checkpoints_of(client, job))
    history = asyncio.create_task(history_of(client, job))
    unread: dict[str, RequestError] = {}
    health_metrics = asyncio.create_task(
        _recording_errors(unread, METRICS_PART, fetch_health_metrics(client, job, now))
        if wants_health_metrics
        else _nothing()
    )
    parts = (log, listing, history, health_metrics)
    try:
        await asyncio.gather(*parts)
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
    read = log.result()
    return LoadedRun(
        run_snapshot(
            job,
            now,
            fold,
            checkpoints=listing.result(),
            queue=history.result(),
            health_metrics=health_metrics.result(),
            price_per_minute=price_of(job, prices or {}, own_prices),
            failing=frozenset(
                {connection.METRICS} if wants_health_metrics and health_metrics.result() is None else ()
            ),
        ),
        read.line_count,
        read.gap_count,
        unread,
    )


def run_snapshot(
    job: TrainingJob,
    now: datetime,
    fold: ProgressFold,
    *,
    checkpoints: tuple[Checkpoint, ...] | None,
    queue: QueueContext | None,
    health_metrics: MetricsSnapshot | None,
    price_per_minute: float | None,
    failing: frozenset[str] = frozenset(),
) -> RunSnapshot:
    """Return the run as of ``now``, assuming that the fold has all of its log so far.

    The clocks are assumed to agree: a single response cannot distinguish a clock offset from samples that
    have stopped.
    """
    return RunSnapshot(
        job=job,
        at=now,
        seen_at=now,
        progress=fold.snapshot(),
        metrics=health_metrics,
        metrics_at=now if health_metrics is not None else None,
        health_metrics=health_metrics,
        health_metrics_at=now if health_metrics is not None else None,
        checkpoints=checkpoints,
        queue=queue,
        history_known=True,
        failing=failing,
        log_read=True,
        price_per_minute=price_per_minute,
    )


async def fold_in_slices(fold: ProgressFold, entries: Sequence[LogEntry]) -> None:
    """Fold a log in slices, yielding to the event loop between them."""
    for start in range(0, len(entries), LINES_AT_ONCE):
        fold.add(entries[start : start + LINES_AT_ONCE])
        await asyncio.sleep(0)


async def _nothing() -> None:
    return None


async def _recording_errors(
    unread: dict[str, RequestError], part: str, reading: Awaitable[MetricsSnapshot]
) -> MetricsSnapshot | None:
    """Await ``reading``; on an error response, record it in ``unread`` and return None."""
    try:
        return await reading
    except (ErrorAnswer, InvalidAnswer) as error:
        if isinstance(error, Unauthorized) and error.is_key_invalid:
            raise
        if not isinstance(error, NotFound):  # A server without that route has no such data to miss.
            unread[part] = error
        return None


@dataclass(frozen=True, slots=True)
class LogReadSummary:
    line_count: int
    gap_count: int
    is_complete: bool = True


async def read_log(
    client: TrainingClient,
    job: TrainingJob,
    fold: ProgressFold,
    start: datetime,
    *,
    on_part: OnPart | None = None,
    most_lines: int | None = None,
) -> LogReadSummary:
    """Fold a job's log from ``start`` to now, up to ``most_lines`` lines. Raises RequestError."""
    lines = gaps = 0
    stream = client.logs.history(job.project_id, job.id, start=start)
    async with aclosing(stream) as batches:
        async for batch in batches:
            new_gaps = sum(isinstance(entry, LogGap) for entry in batch.entries)
            lines += len(batch.entries) - new_gaps
            gaps += new_gaps
            await fold_in_slices(fold, batch.entries)
            if on_part is not None:
                on_part(batch.read_part, lines)
            if most_lines is not None and lines > most_lines:
                return LogReadSummary(lines, gaps, is_complete=False)
    return LogReadSummary(lines, gaps)


HEALTH_SPAN = timedelta(minutes=65)
"""A little more than four times the window for detecting a filling disk (``HealthRules.disk_window_s``)."""
HEALTH_STEP_S = 60
INCREMENT = timedelta(minutes=5)
"""Samples may be late, so every poll requests this much known time again."""

LONGEST_HISTORY = timedelta(milliseconds=LONGEST_HISTORY_MS)
LONGEST_INCREMENT = timedelta(days=6)

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


PART_SAMPLES = 20_000
"""Samples of GPUs in an answer. Parsing more stalls keys even in another thread, since it holds the GIL."""
SERIES_PER_NODE = 16
PART_GROWTH = 4.0


async def metrics_in_parts(
    client: TrainingClient, job: TrainingJob, start: datetime, end: datetime, step_s: int
) -> AsyncIterator[JobMetrics]:
    """Yield the samples of a time range in time order; those between two parts may be repeated.

    Few nodes are one part, unless the range is longer than a server accepts. Raises RequestError.
    """
    for start_ms, end_ms in metric_windows(epoch_ms(start), epoch_ms(end)):
        async for answer in _window_in_parts(client, job, start_ms, end_ms, step_s):
            yield answer


async def _window_in_parts(
    client: TrainingClient, job: TrainingJob, start_ms: int, end_ms: int, step_s: int
) -> AsyncIterator[JobMetrics]:
    width_ms = first_ms = step_s * MS_PER_S * (PART_SAMPLES // (SERIES_PER_NODE * (job.node_count or 1)) + 1)
    densest = 0.0
    while start_ms < end_ms:
        until_ms = min(end_ms, start_ms + width_ms)
        answer = await client.metrics.get(
            job.project_id, job.id, start_ms=start_ms, end_ms=until_ms, step_s=step_s
        )
        yield answer
        densest = max(densest, _sample_count(answer) / (until_ms - start_ms))
        fitting_ms = PART_SAMPLES / densest if densest else math.inf
        width_ms = int(min(width_ms * PART_GROWTH, max(fitting_ms, first_ms)))
        start_ms = until_ms


def _sample_count(answer: JobMetrics) -> int:
    nodes = [node.metrics for node in answer.per_node_metrics] or [answer]
    return sum(
        len(samples)
        for node in nodes
        for gpus in (node.gpu_utilization, node.gpu_memory_usage_bytes)
        for samples in gpus.values()
    )


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
            # From the newest sample on, not from now: the clocks may differ by any time.
            start = datetime.fromtimestamp(newest, UTC) - INCREMENT
            end = min(max(now + CLOCK_SKEW, start + 2 * INCREMENT), start + LONGEST_INCREMENT)
            await self._read(start, end, HEALTH_STEP_S)
        return self.snapshot

    async def read_until(self, end: datetime, now: datetime) -> None:
        """Read the samples from the job's creation to ``end``, those before the last hour only once."""
        last_hour = now - HEALTH_SPAN
        created_at = self._job.created_at
        if not self._has_earlier and created_at is not None and created_at < last_hour:
            created_at = max(created_at, last_hour - LONGEST_HISTORY)
            coarse_s = int((last_hour - created_at).total_seconds() / history_points(self._job)) + 1
            await self._read(created_at, last_hour, max(HEALTH_STEP_S, coarse_s))
        self._has_earlier = True
        if last_hour < end:
            await self._read(last_hour, end, HEALTH_STEP_S)

    def take(self, answer: JobMetrics, now: datetime) -> MetricsSnapshot:
        """Add the last hour of samples that were read for charts."""
        return self._fold.fold(answer, HEALTH_STEP_S, since_s=(now - HEALTH_SPAN).timestamp())

    async def _read(self, start: datetime, end: datetime, step_s: int) -> None:
        async for answer in metrics_in_parts(self._client, self._job, start, end, step_s):
            await asyncio.to_thread(self._fold.fold, answer, step_s)
