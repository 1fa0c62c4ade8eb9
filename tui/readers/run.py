"""The metrics that a run's health is judged by, whatever stretch of time the charts show.

The last hour finely, and all before it coarsely: enough to say since when something has been so. Home, the
job screen and ``bt-tui health`` read the same, so that they say the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from api_client.client import TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.models import Checkpoint, JobMetrics, QueueContext, TrainingJob
from api_client.models.logs import LogGap, LogLine
from tui.analysis import connection
from tui.analysis.cost import price_of
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.analysis.progress.fold import MAX_POINTS, ProgressFold, ProgressPattern
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.session import Session

VITALS_SPAN = timedelta(minutes=65)
"""Four times the window in which a disk is seen to fill (``HealthRules.disk_window_s``), and a little."""
VITALS_STEP_S = 60
VITALS_INTERVAL_S = 20.0
CLOCK_SKEW = timedelta(minutes=5)

FINE_POINTS = 90
"""Points kept of each series of the last hour, however long a run is watched …"""
HISTORY_POINTS = 240
"""… and of the time before it …"""
HISTORY_POINTS_OF_MANY = 60
"""… of a job with more than ``FEW_NODES`` nodes."""
FEW_NODES = 8


def history_points(job: TrainingJob) -> int:
    """How many samples of each series are read of the time before the last hour."""
    return HISTORY_POINTS if (job.node_count or 1) <= FEW_NODES else HISTORY_POINTS_OF_MANY


def vitals_fold(job: TrainingJob) -> MetricsFold:
    """An empty fold for a job's vitals, of bounded space."""
    return MetricsFold(max_points=FINE_POINTS + history_points(job), step_s=VITALS_STEP_S, reduction="mean")


async def read_earlier(client: TrainingClient, job: TrainingJob, now: datetime) -> JobMetrics | None:
    """The samples before the last hour, coarsely; None for a job that is younger. Raises RequestError."""
    end = now - VITALS_SPAN
    if job.created_at is None or job.created_at >= end:
        return None
    step_s = max(VITALS_STEP_S, int((end - job.created_at).total_seconds() / history_points(job)) + 1)
    return await client.metrics.get(
        job.project_id, job.id, start_ms=_millis(job.created_at), end_ms=_millis(end), step_s=step_s
    )


async def read_recent(
    client: TrainingClient, job: TrainingJob, now: datetime, span: timedelta = VITALS_SPAN
) -> JobMetrics:
    """The samples of the last hour, or of another span up to now. Raises RequestError."""
    return await client.metrics.get(
        job.project_id,
        job.id,
        start_ms=_millis(now - span),
        end_ms=_millis(now + CLOCK_SKEW),
        step_s=VITALS_STEP_S,
    )


async def read_vitals(client: TrainingClient, job: TrainingJob, now: datetime) -> MetricsSnapshot:
    """Both, once. Raises RequestError."""
    fold = vitals_fold(job)
    earlier, recent = await asyncio.gather(read_earlier(client, job, now), read_recent(client, job, now))
    if earlier is not None:
        await asyncio.to_thread(fold.fold, earlier)
    return await asyncio.to_thread(fold.fold, recent)


async def follow_vitals(
    session: Session, job: TrainingJob, take: Callable[[MetricsSnapshot], object]
) -> None:
    """Call ``take`` with every new snapshot until the job ends. Raises RequestError.

    One request in twenty seconds beside those of the charts. A finished job has no health: nothing is asked.
    """
    if job.is_finished:
        return
    now = session.clock.now()
    start = now - VITALS_SPAN
    if job.created_at is not None:
        start = max(start, job.created_at)
    fold = vitals_fold(job)
    earlier = await read_earlier(session.client, job, now)
    if earlier is not None:
        await asyncio.to_thread(fold.fold, earlier)
    stream = session.client.metrics.follow(
        job.project_id, job.id, start=start, step_s=VITALS_STEP_S, interval_s=VITALS_INTERVAL_S
    )
    async for answer in stream:
        take(await asyncio.to_thread(fold.fold, answer))


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


UNKNOWN_AGE = timedelta(days=7)
"""How far back to read for a job whose creation time the server does not tell."""
METRICS = "metrics"
"""The name of that part in ``RunReading.unread``."""
LINES_AT_ONCE = 250
"""Lines folded in one turn of the event loop."""

OnPart = Callable[[float | None, int], object]
"""Hears how much of the log has been read (0–1, None where unknown), and how many lines."""


@dataclass(frozen=True, slots=True)
class RunReading:
    """A run as it was read, how many lines its log had, and how many stretches could not be read.

    ``unread`` are the parts beside the log that the server was asked for in vain, by name, and why: what is
    said of the run is said without them.
    """

    run: RunSnapshot
    line_count: int
    gap_count: int
    unread: Mapping[str, RequestError] = field(default_factory=dict)


def beginning_of(job: TrainingJob, now: datetime) -> datetime:
    """From when on a job may have lines."""
    return now - UNKNOWN_AGE if job.created_at is None else job.created_at - CLOCK_SKEW


async def checkpoints_of(client: TrainingClient, job: TrainingJob) -> tuple[Checkpoint, ...] | None:
    """A job's checkpoints; None where the server does not list them."""
    try:
        return tuple(await client.checkpoints.list(job.project_id, job.id))
    except (ErrorAnswer, InvalidAnswer) as error:
        if error.retryable:
            raise
        return None


async def history_of(client: TrainingClient, job: TrainingJob) -> QueueContext | None:
    """A job's changes of status; None for whoever may not read them."""
    try:
        return await client.jobs.queue_context(job.id)
    except (ErrorAnswer, InvalidAnswer):
        return None


async def vitals_of(client: TrainingClient, job: TrainingJob, now: datetime) -> MetricsSnapshot:
    """What health is judged by (of a finished job: what the server chooses). Raises RequestError."""
    if not job.is_finished:
        return await read_vitals(client, job, now)
    answer = await client.metrics.get(job.project_id, job.id)
    return await asyncio.to_thread(MetricsFold().fold, answer)


async def read_run(
    client: TrainingClient,
    job: TrainingJob,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    max_points: int = MAX_POINTS,
    with_vitals: bool = True,
    stream: str | None = None,
    patterns: Sequence[ProgressPattern] = (),
    own_prices: Mapping[str, float] | None = None,
    on_part: OnPart | None = None,
) -> RunReading:
    """Read a run's log from ``since`` (default: its beginning) to now, and what else is known of it.

    ``patterns`` read the lines of the user's own trainers, ``own_prices`` come before the listed ``prices``.
    ``stream`` chooses whose progress counts (``ProgressFold.choose``). The metrics are read where
    ``with_vitals``, or where nothing else tells how many nodes there are.
    Raises RequestError; parts that a server does not have are left out. Metrics that it fails to answer do
    not hide what the log tells: they are named in ``RunReading.unread``.
    """
    now = datetime.now(UTC)
    fold = ProgressFold(max_points=max_points, patterns=patterns)
    fold.choose(stream)
    wants_vitals = with_vitals or not job.node_count
    start = since or beginning_of(job, now)
    log = asyncio.create_task(read_log(client, job, fold, start, on_part=on_part))
    listing = asyncio.create_task(checkpoints_of(client, job))
    history = asyncio.create_task(history_of(client, job))
    unread: dict[str, RequestError] = {}
    vitals = asyncio.create_task(
        _noting(unread, METRICS, vitals_of(client, job, now)) if wants_vitals else _nothing()
    )
    parts = (log, listing, history, vitals)
    try:
        await asyncio.gather(*parts)
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
    read = log.result()
    return RunReading(
        run_snapshot(
            job,
            now,
            fold,
            checkpoints=listing.result(),
            queue=history.result(),
            vitals=vitals.result(),
            price_per_minute=price_of(job, prices or {}, own_prices),
            failing=frozenset({connection.METRICS} if wants_vitals and vitals.result() is None else ()),
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
    vitals: MetricsSnapshot | None,
    price_per_minute: float | None,
    failing: frozenset[str] = frozenset(),
) -> RunSnapshot:
    """The run as of ``now``, all of whose log so far is in the fold.

    Clocks are taken to agree: one look cannot tell a clock that is behind from samples that have stopped.
    """
    return RunSnapshot(
        job=job,
        at=now,
        seen_at=now,
        progress=fold.snapshot(),
        metrics=vitals,
        metrics_at=now if vitals is not None else None,
        vitals=vitals,
        vitals_at=now if vitals is not None else None,
        checkpoints=checkpoints,
        queue=queue,
        history_known=True,
        failing=failing,
        log_read=True,
        price_per_minute=price_per_minute,
    )


async def fold_in_slices(fold: ProgressFold, lines: Sequence[LogLine]) -> None:
    """Fold lines, letting whoever else is on the event loop have a turn now and then."""
    for start in range(0, len(lines), LINES_AT_ONCE):
        fold.add(lines[start : start + LINES_AT_ONCE])
        await asyncio.sleep(0)


async def _nothing() -> None:
    return None


async def _noting(
    unread: dict[str, RequestError], part: str, reading: Awaitable[MetricsSnapshot]
) -> MetricsSnapshot | None:
    """What is read; None, and a note of the error, where the server answers something else."""
    try:
        return await reading
    except (ErrorAnswer, InvalidAnswer) as error:
        if isinstance(error, Unauthorized) and error.status == 401:  # the key itself is refused
            raise
        if not isinstance(error, NotFound):  # a server without that part has nothing to hide
            unread[part] = error
        return None


@dataclass(frozen=True, slots=True)
class LogReading:
    """How much of a log was read: lines, stretches that could not be, and whether it is all of it."""

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
) -> LogReading:
    """Fold a job's log from ``start`` to now, up to ``most_lines`` of it. Raises RequestError."""
    lines = gaps = 0
    stream = client.logs.history(job.project_id, job.id, start=start)
    async with aclosing(stream) as batches:
        async for batch in batches:
            new = [entry for entry in batch.entries if isinstance(entry, LogLine)]
            lines += len(new)
            gaps += sum(isinstance(entry, LogGap) for entry in batch.entries)
            await fold_in_slices(fold, new)
            if on_part is not None:
                on_part(batch.read_part, lines)
            if most_lines is not None and lines > most_lines:
                return LogReading(lines, gaps, is_complete=False)
    return LogReading(lines, gaps)
