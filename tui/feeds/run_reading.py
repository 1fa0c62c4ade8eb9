"""One run, read once from the beginning: its log folded, its metrics, checkpoints, history and price."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from api_client.client import TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.models import Checkpoint, QueueContext, TrainingJob
from api_client.streams.records import LogGap, LogLine
from tui.feeds.vitals import read_vitals
from tui.insight import asked_for
from tui.insight.cost.job import price_of
from tui.insight.nodes.metrics import MetricsFold, MetricsSnapshot
from tui.insight.progress.fold import MAX_POINTS, ProgressFold, ProgressPattern
from tui.insight.run.snapshot import RunSnapshot

CLOCK_SKEW = timedelta(minutes=5)
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
            failing=frozenset({asked_for.METRICS} if wants_vitals and vitals.result() is None else ()),
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
