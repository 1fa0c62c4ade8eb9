"""Watch a run: read its parts (status, log, metrics …) on request, and combine them in a snapshot.

The job screen reads each part as it changes (``tui.feeds.run``); Home, Compare, guards and summaries poll
all parts together, and a command reads them once (``read_run``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from api_client.checkpoints.trainer_state import FILE_NAME as TRAINER_STATE
from api_client.client import TrainingClient
from api_client.errors import (
    NOT_RECORDED,
    ErrorAnswer,
    InvalidAnswer,
    NotFound,
    RequestError,
    Unauthorized,
)
from api_client.models import Checkpoint, TrainingJob
from api_client.models.checkpoints import ROOT_CHECKPOINT
from tui.analysis.checkpoints.facts import newest_of, sync_state
from tui.analysis.connection import CHECKPOINTS, METRICS, ClockOffset
from tui.analysis.cost import price_of
from tui.analysis.health.checkpoint_faults import checkpoint_faults
from tui.analysis.health.judge import judged, with_earlier, with_findings
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.points import MAX_POINTS
from tui.analysis.run.checkpoints import KeptLosses, saved_key
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import is_all_checked
from tui.readers.billing import read_bill
from tui.readers.health_metrics import HEALTH_STEP_S, HealthMetrics
from tui.readers.log_reader import LogReader, OnLogProgress
from tui.readers.session import listed_prices, read_status_changes
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.times import time_key
from tui.text.units import count

POLL_EVERY_S = 30.0
"""Usual interval for polling a run."""
CHECKPOINTS_AGE_S = 300.0
"""Minimum interval for listing a job's checkpoints: one additional request in ten polls."""


class RunWatcher:
    """Reads one run and holds its newest state. Every ``read_…`` reads one part, and raises RequestError.

    ``max_points`` limits the points of each curve. ``findings`` are from an earlier check, and stay in the
    snapshot until log and metrics have been checked. ``clock_offset`` is shared by the watchers of one
    server; without it, the clocks are assumed to agree. The log is read from ``since`` (default: its
    beginning).
    """

    def __init__(
        self,
        client: TrainingClient,
        job: TrainingJob,
        settings: RunSettings = DEFAULT,
        *,
        max_points: int = MAX_POINTS,
        findings: tuple[HealthFinding, ...] = (),
        clock_offset: ClockOffset | None = None,
        since: datetime | None = None,
        on_log_progress: OnLogProgress = lambda _fraction, _line_count: None,
    ) -> None:
        self.client = client
        self.settings = settings
        self._max_points = max_points
        self._earlier_findings = findings
        now = client.clock.now()
        self.snapshot = with_findings(RunSnapshot(job=job, at=now, seen_at=now), findings)
        """The newest state; ``at`` and the progress are those of the last ``update``."""
        self.progress = self._new_fold()
        self.log = LogReader(client, job, self.progress, start=since, on_log_progress=on_log_progress)
        self.health_metrics = HealthMetrics(client, job)
        self.read_errors: dict[str, RequestError] = {}
        """Errors of the last poll by part, such as "the log"; not for parts whose route the server lacks."""
        self._clock_offset = clock_offset
        self._checkpoints_polled_s = self._bill_read_s = -math.inf
        self._history_state: tuple[object, ...] = ()
        """The job's status and ``updated_at`` when its status history was last polled."""
        self._checked_inputs: tuple[object, ...] = ()
        """What the last check of the checkpoints depended on."""
        self._checkpoints_of_kept_losses: tuple[Checkpoint, ...] | None = None
        """The checkpoints that were listed when the stored losses were last read; None before that."""

    @property
    def job(self) -> TrainingJob:
        return self.snapshot.job

    def change(self, **fields: Any) -> None:
        """Replace fields of the snapshot."""
        self.snapshot = replace(self.snapshot, **fields)

    def update(self, **fields: Any) -> RunSnapshot:
        """Update the snapshot's time, progress and the given fields; return the snapshot."""
        self.change(**{"at": self.client.clock.now(), "progress": self.progress.snapshot()} | fields)
        return self.snapshot

    def restart_log(self) -> None:
        """Discard the progress to read the log again; the findings stay until the new log is checked."""
        self._earlier_findings = self.snapshot.findings
        self.progress = self._new_fold()

    def _new_fold(self) -> ProgressFold:
        return ProgressFold(max_points=self._max_points, patterns=self.settings.patterns)

    async def poll(
        self,
        read_log: Callable[[], Coroutine[Any, Any, None]],
        *,
        with_metrics: bool = True,
        checkpoints_age_s: float = 0.0,
    ) -> None:
        """Poll all parts; the checkpoints only if last polled at least ``checkpoints_age_s`` ago.

        The snapshot's ``failing`` and this object's ``read_errors`` name the parts that the server refused.
        Raises RequestError if the log cannot be read, or the server does not respond.
        """
        clock = self.client.clock
        at, now_s = clock.now(), clock.monotonic()
        reads = [read_log(), self._poll_history()]
        if with_metrics:
            reads.append(self._poll_part(METRICS, self._poll_metrics))
        if are_checkpoints_due := now_s - self._checkpoints_polled_s >= checkpoints_age_s:
            reads.append(self._poll_part(CHECKPOINTS, self.read_checkpoints))
        await gather_or_cancel(*reads)
        if are_checkpoints_due:
            self._checkpoints_polled_s = now_s
        run = self.snapshot
        # The snapshot has the time when the poll began, because later lines may not have been read.
        self.update(
            at=at,
            log_read=self.log.is_read,
            history_known=True,
            metrics=run.health_metrics,
            metrics_at=run.health_metrics_at,
        )

    async def _poll_part(self, part: str, read: Callable[[], Awaitable[None]]) -> None:
        """Read a part of the run; if the server refuses it, record the error, so that the poll continues."""
        try:
            await read()
        except (ErrorAnswer, InvalidAnswer) as error:
            if isinstance(error, Unauthorized) and error.is_key_invalid:
                raise
            self.change(failing=self.snapshot.failing | {part})
            if not isinstance(error, NotFound):  # a server without the route has no such data
                self.read_errors[part] = error
        else:
            self.change(failing=self.snapshot.failing - {part})
            self.read_errors.pop(part, None)

    async def _poll_metrics(self) -> None:
        await self.read_health_metrics()
        self.update_clock_offset(self.health_metrics.snapshot, HEALTH_STEP_S)

    async def _poll_history(self) -> None:
        """Read the status history, which shows restarts, whenever the job has changed."""
        state = (self.job.current_status, self.job.updated_at)
        if state != self._history_state:
            await self.read_history()
            self._history_state = state

    async def read_status(self) -> None:
        job = await self.client.jobs.get(self.job.project_id, self.job.id)
        self.change(job=job, seen_at=self.client.clock.now())

    async def read_history(self) -> None:
        """Read the status history, if the user may read it and the server has it."""
        queue = await read_status_changes(self.client, self.job)
        self.change(queue=queue or self.snapshot.queue, history_known=True)

    async def read_checkpoints(self) -> None:
        """List the checkpoints; a recording may lack the list."""
        try:
            checkpoint_list = await self.client.checkpoints.list(self.job.project_id, self.job.id)
        except NotFound as error:
            if error.code != NOT_RECORDED:
                raise
            self.change(checkpoints_recorded=False)
        else:
            # Keep the same object if nothing changed, so that readers can skip it.
            if (checkpoints := tuple(checkpoint_list)) != self.snapshot.checkpoints:
                self.change(checkpoints=checkpoints)

    async def read_kept_losses(self) -> None:
        """Read the losses that the trainer stored in the newest checkpoint, if there are new checkpoints."""
        checkpoints = self.snapshot.checkpoints
        if checkpoints is not None and checkpoints != self._checkpoints_of_kept_losses:
            losses = await kept_losses_of(self.client, self.job, checkpoints)
            self._checkpoints_of_kept_losses = checkpoints
            self.change(kept_losses=losses)

    async def read_price(self) -> None:
        own_prices = self.settings.prices
        self.change(price_per_minute=price_of(self.job, {}, own_prices))  # in case the next request fails
        listed_by_id = await listed_prices(self.client)
        self.change(price_per_minute=price_of(self.job, listed_by_id, own_prices))

    async def read_bill(self, *, age_s: float = 0.0) -> None:
        """Read the bill, unless it was read less than ``age_s`` ago."""
        clock = self.client.clock
        if self.job.created_at is not None and clock.monotonic() - self._bill_read_s >= age_s:
            self.change(bill=await read_bill(self.client, self.job.created_at, clock.now()))
            self._bill_read_s = clock.monotonic()

    async def read_health_metrics(self) -> None:
        """Read the samples for health checks: all on the first call, the new samples on later calls."""
        now = self.client.clock.now()
        samples = await self.health_metrics.poll(now)
        self.change(health_metrics=samples, health_metrics_at=now)

    def update_clock_offset(self, samples: MetricsSnapshot, step_s: float) -> None:
        """Update the estimated clock offset from samples, ``step_s`` apart, that were just read."""
        if self._clock_offset is None:
            return
        if samples.at is not None:
            self._clock_offset.add_response(samples.at, self.client.clock.now().timestamp(), step_s)
        self.change(clock_ahead_s=self._clock_offset.ahead_s)

    async def check(self) -> None:
        """Run the health checks in a thread, since checking 64 nodes would delay keys."""
        run = self.snapshot
        checked_run = await asyncio.to_thread(judged, run, self.settings.rules, run.findings)
        if is_all_checked(checked_run):
            self._earlier_findings = ()
        findings = with_earlier(checked_run.findings, self._earlier_findings)
        self.change(checked_sources=checked_run.checked_sources, compares_nodes=checked_run.compares_nodes)
        self.snapshot = with_findings(self.snapshot, findings)

    async def check_checkpoints(self) -> None:
        """Check the checkpoints if any are new, the run restarted, or findings about the loss changed."""
        run = self.snapshot
        if run.log_read and _check_inputs(run) != self._checked_inputs:
            faults = await asyncio.to_thread(checkpoint_faults, run, self.settings.rules)
            self._checked_inputs = _check_inputs(replace(run, faults=faults))
            self.change(faults=faults)


def _check_inputs(run: RunSnapshot) -> tuple[object, ...]:
    """Return what the check of the checkpoints depends on.

    The number of losses is included only until the newest checkpoint has been checked.
    """
    restarts = run.progress.restarts if run.progress is not None else ()
    loss_findings = [(finding.kind, finding.since) for finding in run.findings if finding.kind.loss]
    checkpoints = run.checkpoints or ()
    newest = max(checkpoints, key=lambda checkpoint: time_key(checkpoint.created_at), default=None)
    is_newest_unchecked = newest is not None and saved_key(newest) not in (run.faults or {})
    loss_count = len(run.progress.loss_series) if is_newest_unchecked and run.progress is not None else 0
    return (run.log_read, run.checkpoints, restarts, loss_findings, loss_count)


async def kept_losses_of(
    client: TrainingClient, job: TrainingJob, checkpoints: Sequence[Checkpoint]
) -> KeptLosses:
    """Return the losses that the trainer stored in the newest complete checkpoint; empty if unreadable."""
    uploaded = [checkpoint for checkpoint in checkpoints if sync_state(checkpoint) != "uploading"]
    newest = newest_of(uploaded)
    if newest is None or len(uploaded) < 2:
        return KeptLosses()  # losses are read only to find the best of several
    folder = "" if newest.checkpoint_id == ROOT_CHECKPOINT else f"{newest.checkpoint_id}/"
    file_count = 0
    with suppress(RequestError):
        async for file in client.checkpoints.files(job.project_id, job.id):
            if file.relative_file_name == folder + TRAINER_STATE:
                state = await client.checkpoint_contents.trainer_state(job.project_id, job.id, file)
                return KeptLosses(state.curve("loss"), state.curve("eval_loss"))
            file_count += 1
            # Do not list all files of a large job just to mark its best checkpoint.
            if file_count >= 5000:
                break
    return KeptLosses()


async def gather_or_cancel(*coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run coroutines concurrently and return their results; the first error cancels the others."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run, with the number of lines and gaps in its log.

    ``read_errors`` has, by part, the errors of the parts other than the log that ``run`` therefore lacks.
    """

    run: RunSnapshot
    line_count: int
    gap_count: int
    read_errors: Mapping[str, RequestError] = field(default_factory=dict)


async def read_run(
    client: TrainingClient,
    job: TrainingJob,
    settings: RunSettings = DEFAULT,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    with_health_metrics: bool = True,
    stream: str | None = None,
    on_log_progress: OnLogProgress = lambda _fraction, _line_count: None,
) -> LoadedRun:
    """Read a run's log from ``since`` (default: its beginning) to now, and all other data about it.

    ``prices`` are the ``listed_prices`` of the server. ``stream`` selects the source of progress
    (``ProgressFold.choose``). The metrics are read if ``with_health_metrics``, or if nothing else gives the
    number of nodes. Parts that a server does not have are left out; the errors of parts that it refuses are
    in ``LoadedRun.read_errors``. The clocks are assumed to agree: a single response cannot distinguish a
    clock offset from samples that have stopped. Raises RequestError.
    """
    watcher = RunWatcher(client, job, settings, since=since, on_log_progress=on_log_progress)
    log = watcher.log
    watcher.progress.choose(stream)
    watcher.change(price_per_minute=price_of(job, prices or {}, settings.prices))
    await watcher.poll(log.read_whole, with_metrics=with_health_metrics or not job.node_count)
    read_errors = {part.removeprefix("the "): error for part, error in watcher.read_errors.items()}
    return LoadedRun(watcher.snapshot, log.line_count, log.gap_count, read_errors)


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A run with checked checkpoints; ``problem`` (not sanitized) says why the check failed, if it did."""

    run: RunSnapshot
    problem: str = ""


async def read_checked_run(
    client: TrainingClient,
    job: TrainingJob,
    checkpoints: Sequence[Checkpoint],
    settings: RunSettings = DEFAULT,
    *,
    on_log_progress: OnLogProgress = lambda _fraction, _line_count: None,
    max_lines: int = 100_000,  # longer logs would take commands minutes
) -> CheckedRun:
    """Check a job's checkpoints against its log; if the log can't be read, they stay unchecked."""
    watcher = RunWatcher(client, job, settings, on_log_progress=on_log_progress)
    log = watcher.log
    watcher.change(checkpoints=tuple(checkpoints), history_known=True)
    if not checkpoints:
        return CheckedRun(watcher.snapshot)
    try:
        await gather_or_cancel(log.read_whole(max_lines), watcher.read_kept_losses())
    except RequestError as error:
        return CheckedRun(watcher.snapshot, f"can't read the log: {error}")
    run = watcher.update(log_read=log.is_read)
    if not log.is_read:
        return CheckedRun(run, f"the log has more than {count(max_lines)} lines")
    await watcher.check_checkpoints()
    return CheckedRun(watcher.snapshot)
