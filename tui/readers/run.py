"""Read one run once: its log, checkpoints, history and the metrics for health checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import Checkpoint, TrainingJob
from tui.analysis.cost import price_of
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.log_reader import OnPart
from tui.readers.watcher import RunWatcher, together
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.units import count


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run, with the number of lines and of unreadable time ranges in its log.

    ``unread`` maps parts other than the log that could not be read to the error; the run lacks them.
    """

    run: RunSnapshot
    line_count: int
    gap_count: int
    unread: Mapping[str, RequestError] = field(default_factory=dict)


async def read_run(
    client: TrainingClient,
    job: TrainingJob,
    settings: RunSettings = DEFAULT,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    with_health_metrics: bool = True,
    stream: str | None = None,
    on_part: OnPart = lambda _part, _count: None,
) -> LoadedRun:
    """Read a run's log from ``since`` (default: its beginning) to now, and all other data about it.

    ``prices`` are the listed ones. ``stream`` selects the source of progress (``ProgressFold.choose``). The
    metrics are read if ``with_health_metrics``, or if nothing else gives the number of nodes. Parts that a
    server does not have are left out; those that it refuses are in ``LoadedRun.unread``. The clocks are
    assumed to agree: a single answer cannot distinguish an offset from samples that have stopped. Raises
    RequestError.
    """
    watcher = RunWatcher(client, job, settings, since=since, on_part=on_part)
    log = watcher.log
    watcher.progress.choose(stream)
    watcher.change(price_per_minute=price_of(job, prices or {}, settings.prices))
    await watcher.poll(log.read_whole, with_metrics=with_health_metrics or not job.node_count)
    unread = {part.removeprefix("the "): error for part, error in watcher.unread.items()}
    return LoadedRun(watcher.snapshot, log.line_count, log.gap_count, unread)


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
    on_part: OnPart = lambda _part, _count: None,
    most_lines: int = 100_000,  # longer logs would take commands minutes
) -> CheckedRun:
    """Read the log of a job to check its checkpoints. If it cannot be read, they stay unchecked."""
    watcher = RunWatcher(client, job, settings, on_part=on_part)
    log = watcher.log
    watcher.change(checkpoints=tuple(checkpoints), history_known=True)
    if not checkpoints:
        return CheckedRun(watcher.snapshot)
    try:
        await together(log.read_whole(most_lines), watcher.read_kept_losses())
    except RequestError as error:
        return CheckedRun(watcher.snapshot, f"can't read the log: {error}")
    run = watcher.update(log_read=log.is_read)
    if not log.is_read:
        return CheckedRun(run, f"the log has more than {count(most_lines)} lines")
    await watcher.check_checkpoints()
    return CheckedRun(watcher.snapshot)
