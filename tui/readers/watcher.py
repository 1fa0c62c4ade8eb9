"""A watched run: each of its parts is read when a caller asks for it, and folded once.

The job screen reads them as they change (``tui.feeds.run``), Home a few of them every half minute
(``tui.feeds.previews``), a command each of them once (``tui.readers.run``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from api_client.client import TrainingClient
from api_client.errors import NOT_RECORDED, NotFound, RequestError
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from tui.analysis.checkpoints.facts import checkpoint_facts
from tui.analysis.connection import ClockOffset
from tui.analysis.cost import price_of
from tui.analysis.health.checkpoint_faults import checkpoint_faults
from tui.analysis.health.judge import judged, with_findings
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.points import MAX_POINTS
from tui.analysis.run.checkpoints import KeptLosses, saved_key
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import is_all_checked
from tui.readers.billing import read_bill
from tui.readers.health_metrics import HealthMetrics
from tui.readers.session import history_of, listed_prices
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.times import time_key


class RunWatcher:
    """What is known of one run. Every ``read_…`` reads one part from the server, and raises RequestError.

    ``max_points`` limits the curves. ``findings`` are those already known: they stay until the run's own log
    and metrics have been checked. ``clock_offset`` is shared by the watchers of one server.
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
    ) -> None:
        self.client = client
        self.settings = settings
        self._max_points = max_points
        self._earlier_findings = findings
        now = client.clock.now()
        self.snapshot = with_findings(RunSnapshot(job=job, at=now, seen_at=now), findings)
        """The newest state; ``at`` and the progress are those of the last ``update``."""
        self.progress = self._new_fold()
        self.health_metrics = HealthMetrics(client, job)
        self._clock_offset = clock_offset or ClockOffset()
        self._checkpoints_checked: tuple[object, ...] = ()
        """The data of the last check of the checkpoints."""
        self._kept_losses_of: tuple[Checkpoint, ...] | None = None

    @property
    def job(self) -> TrainingJob:
        return self.snapshot.job

    def change(self, **parts: Any) -> None:
        """Replace parts of the snapshot."""
        self.snapshot = replace(self.snapshot, **parts)

    def update(self, **parts: Any) -> RunSnapshot:
        """Return the snapshot as of now, with the progress folded so far."""
        self.change(**{"at": self.client.clock.now(), "progress": self.progress.snapshot()} | parts)
        return self.snapshot

    def restart_log(self) -> None:
        """Fold the log from its beginning, because it is read again; the findings stay until then."""
        self._earlier_findings = self.snapshot.findings
        self.progress = self._new_fold()

    def _new_fold(self) -> ProgressFold:
        return ProgressFold(max_points=self._max_points, patterns=self.settings.patterns)

    async def read_history(self) -> None:
        """Read the status history, which not everybody may read, and not every server has."""
        queue = await history_of(self.client, self.job)
        self.change(queue=queue or self.snapshot.queue, history_known=True)

    async def read_checkpoints(self) -> None:
        """List the checkpoints; a recording may have none."""
        try:
            listed = await self.client.checkpoints.list(self.job.project_id, self.job.id)
        except NotFound as error:
            if error.code != NOT_RECORDED:
                raise
            self.change(checkpoints_recorded=False)
        else:
            self.change(checkpoints=tuple(listed))

    async def read_kept_losses(self) -> None:
        """Read the trainer's record of the newest checkpoint, if there are new checkpoints."""
        listed = self.snapshot.checkpoints
        if listed is not None and listed != self._kept_losses_of:
            losses = await kept_losses_of(self.client, self.job, listed)
            self._kept_losses_of = listed
            self.change(kept_losses=losses)

    async def read_price(self) -> None:
        own = self.settings.prices
        self.change(price_per_minute=price_of(self.job, {}, own))
        self.change(price_per_minute=price_of(self.job, await listed_prices(self.client), own))

    async def read_bill(self) -> None:
        if self.job.created_at is not None:
            now = self.client.clock.now()
            self.change(bill=await read_bill(self.client, self.job.created_at, now))

    async def read_health_metrics(self) -> None:
        """Read the samples for health checks: at first all, then the new ones."""
        now = self.client.clock.now()
        samples = await self.health_metrics.poll(now)
        self.change(health_metrics=samples, health_metrics_at=now)

    def note_clock(self, samples: MetricsSnapshot, step_s: float) -> None:
        """Compare the clocks by samples, ``step_s`` apart, that were just read."""
        if samples.at is not None:
            self._clock_offset.saw(samples.at, self.client.clock.now().timestamp(), step_s)
        self.change(clock_ahead_s=self._clock_offset.ahead_s)

    async def check(self) -> None:
        """Run the health checks; in a thread, since 64 nodes take longer than a key press may wait."""
        run = self.snapshot
        checked = await asyncio.to_thread(judged, run, self.settings.rules, run.findings)
        if is_all_checked(checked):
            self._earlier_findings = ()
        own = {finding.key for finding in checked.findings}
        earlier = [finding for finding in self._earlier_findings if finding.key not in own]
        self.change(checked_sources=checked.checked_sources, compares_nodes=checked.compares_nodes)
        self.snapshot = with_findings(self.snapshot, [*checked.findings, *earlier])

    async def check_checkpoints(self) -> None:
        """Check the checkpoints again if there are new ones, or the loss broke, recovered or restarted."""
        run = self.snapshot
        restarts = run.progress.restarts if run.progress is not None else ()
        broken = [(item.kind, item.since) for item in run.findings if item.kind.loss]
        newest = max(run.checkpoints or (), key=lambda item: time_key(item.created_at), default=None)
        waits = newest is not None and saved_key(newest) not in (run.faults or {})
        readings = len(run.progress.loss_series) if waits and run.progress is not None else 0
        state = (run.log_read, run.checkpoints, restarts, broken, readings)
        if run.log_read and state != self._checkpoints_checked:
            faults = await asyncio.to_thread(checkpoint_faults, run, self.settings.rules)
            self._checkpoints_checked = state
            self.change(faults=faults)


RECORD_NAME = "trainer_state.json"
MAX_FILES_LISTED = 5000
"""Files to scan for the record. A job may have many more, too many to list for a mark in a table."""


async def kept_losses_of(client: TrainingClient, job: TrainingJob, found: Sequence[Checkpoint]) -> KeptLosses:
    """Return the losses stored with the newest complete checkpoint. Unreadable ones count as not stored."""
    finished = [fact.checkpoint for fact in checkpoint_facts(found) if fact.sync != "uploading"]
    if len(finished) < 2:
        return KeptLosses()  # It takes at least two checkpoints to have a best one.
    try:
        file = await _newest_record(client, job, finished)
        if file is None:
            return KeptLosses()
        state = await client.checkpoint_contents.trainer_state(job.project_id, job.id, file)
    except RequestError:
        return KeptLosses()
    return KeptLosses(state.curve("loss"), state.curve("eval_loss"))


async def _newest_record(
    client: TrainingClient, job: TrainingJob, finished: Sequence[Checkpoint]
) -> CheckpointFile | None:
    newest = next(fact.name for fact in checkpoint_facts(finished) if fact.is_newest)
    record_path = f"{newest}/{RECORD_NAME}" if newest != "." else RECORD_NAME
    places = itertools.count(1)
    async for file in client.checkpoints.files(job.project_id, job.id):
        if file.relative_file_name == record_path:
            return file
        if next(places) >= MAX_FILES_LISTED:
            break
    return None
