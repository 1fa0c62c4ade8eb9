"""Read one run once: its log, checkpoints, history and the metrics for health checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from time import thread_time
from typing import Any

from api_client.client import TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.models import Checkpoint, TrainingJob
from api_client.models.logs import LogEntry, LogGap
from tui.analysis.connection import METRICS
from tui.analysis.cost import price_of
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.points import MAX_POINTS
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.watcher import RunWatcher
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.units import count

METRICS_PART = "metrics"
"""Key of the metrics in ``LoadedRun.unread``."""
LINES_AT_ONCE = 250
"""Lines to fold per turn of the event loop: some milliseconds, since a key takes several turns."""
MOST_LINES = 100_000
"""Commands do not read the losses of longer logs, because that would take minutes."""

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


async def together(*parts: Coroutine[Any, Any, Any]) -> list[Any]:
    """Return the results of these, run at the same time; the first error cancels the others."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_run(
    client: TrainingClient,
    job: TrainingJob,
    settings: RunSettings = DEFAULT,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    max_points: int = MAX_POINTS,
    with_health_metrics: bool = True,
    stream: str | None = None,
    on_part: OnPart | None = None,
) -> LoadedRun:
    """Read a run's log from ``since`` (default: its beginning) to now, and all other data about it.

    ``prices`` are the listed ones. ``stream`` selects the source of progress (``ProgressFold.choose``). The
    metrics are read if ``with_health_metrics``, or if nothing else gives the number of nodes. Parts that a
    server does not have are left out. If the metrics fail, the log is still returned, with the error in
    ``LoadedRun.unread``. The clocks are assumed to agree: a single answer cannot distinguish an offset from
    samples that have stopped. Raises RequestError.
    """
    watcher = RunWatcher(client, job, settings, max_points=max_points)
    watcher.progress.choose(stream)
    now = watcher.snapshot.at
    unread: dict[str, RequestError] = {}

    async def metrics() -> None:
        if with_health_metrics or not job.node_count:
            await read_metrics_if_any(watcher, unread)

    start = since or job.earliest_time(now)
    log, *_ = await together(
        read_log(client, job, watcher.progress, start, on_part=on_part),
        read_checkpoints_if_any(watcher),
        watcher.read_history(),
        metrics(),
    )
    price = price_of(job, prices or {}, settings.prices)
    run = watcher.update(at=now, log_read=True, price_per_minute=price)
    return LoadedRun(run, log.line_count, log.gap_count, unread)


async def read_checkpoints_if_any(watcher: RunWatcher) -> None:
    """Read the checkpoints unless the server refuses to list them. Raises RequestError for others."""
    try:
        await watcher.read_checkpoints()
    except (ErrorAnswer, InvalidAnswer) as error:
        if error.retryable:
            raise


async def read_metrics_if_any(watcher: RunWatcher, unread: dict[str, RequestError]) -> None:
    """Read the metrics, which charts show, too; on an error response, record it in ``unread``."""
    try:
        await watcher.read_health_metrics()
    except (ErrorAnswer, InvalidAnswer) as error:
        if isinstance(error, Unauthorized) and error.is_key_invalid:
            raise
        if not isinstance(error, NotFound):  # A server without that route has no such data to miss.
            unread[METRICS_PART] = error
        watcher.change(failing=frozenset({METRICS}))
    else:
        run = watcher.snapshot
        watcher.change(metrics=run.health_metrics, metrics_at=run.health_metrics_at)


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


async def fold_in_slices(fold: ProgressFold, entries: Sequence[LogEntry]) -> float:
    """Fold a log in slices, yielding to the event loop between them; return the CPU seconds spent."""
    spent_s = 0.0
    for start in range(0, len(entries), LINES_AT_ONCE):
        began_s = thread_time()
        fold.add(entries[start : start + LINES_AT_ONCE])
        spent_s += thread_time() - began_s
        await asyncio.sleep(0)
    return spent_s


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A run with its checkpoints checked; ``problem`` says why they could not be (not sanitized)."""

    run: RunSnapshot
    problem: str = ""


async def evidence_of(
    client: TrainingClient,
    job: TrainingJob,
    checkpoints: Sequence[Checkpoint],
    settings: RunSettings = DEFAULT,
    *,
    on_part: OnPart | None = None,
    most_lines: int = MOST_LINES,
) -> CheckedRun:
    """Read the log of a job to check its checkpoints. If it cannot be read, they stay unchecked."""
    watcher = RunWatcher(client, job, settings)
    watcher.change(checkpoints=tuple(checkpoints), history_known=True)
    if not checkpoints:
        return CheckedRun(watcher.snapshot)
    start = job.earliest_time(watcher.snapshot.at)
    try:
        log, _ = await together(
            read_log(client, job, watcher.progress, start, on_part=on_part, most_lines=most_lines),
            watcher.read_kept_losses(),
        )
    except RequestError as error:
        return CheckedRun(watcher.snapshot, f"can't read the log: {error}")
    run = watcher.update(log_read=log.is_complete)
    if not log.is_complete:
        return CheckedRun(run, f"the log has more than {count(most_lines)} lines")
    await watcher.check_checkpoints()
    return CheckedRun(watcher.snapshot)
