"""One run, watched from time to time: each poll reads what is new of its log, metrics and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from api_client.errors import ErrorAnswer, InvalidAnswer
from tui.analysis.connection import CHECKPOINTS, METRICS
from tui.readers.health_metrics import HEALTH_STEP_S
from tui.readers.log_tail import LogTail
from tui.readers.run import together
from tui.readers.watcher import RunWatcher

CHECKPOINTS_AGE_S = 300.0
"""Minimum interval for listing a job's checkpoints: one additional request in ten polls."""


class PolledRun:
    """A run that is polled every half minute or so.

    The snapshot's ``failing`` names what the last poll could not read; only without the status or the log
    it fails as a whole.
    """

    def __init__(self, watcher: RunWatcher, *, checkpoints_age_s: float = CHECKPOINTS_AGE_S) -> None:
        self.watcher = watcher
        self.log = LogTail(watcher.client, watcher.job, watcher.progress)
        self.due_at = -math.inf
        """The time of the next poll (monotonic)."""
        self._checkpoints_due_at = -math.inf
        self._checkpoints_age_s = checkpoints_age_s
        self._history_of = ""
        """The state of the job whose history was read."""

    async def read(self) -> None:
        """Read what is new. Raises RequestError."""
        await together(
            self.log.read_newest(), self._read_metrics(), self._read_checkpoints(), self._read_history()
        )

    async def _read_metrics(self) -> None:
        """Read the new samples unless the server fails: the log has information too."""
        with self._noting(METRICS):
            await self.watcher.read_health_metrics()
            samples = self.watcher.snapshot.health_metrics
            if samples is not None:
                self.watcher.note_clock(samples, HEALTH_STEP_S)

    async def _read_checkpoints(self) -> None:
        """List the checkpoints from time to time, to notice an overdue one."""
        now = self.watcher.client.clock.monotonic()
        if now >= self._checkpoints_due_at:
            with self._noting(CHECKPOINTS):
                await self.watcher.read_checkpoints()
            self._checkpoints_due_at = now + self._checkpoints_age_s

    async def _read_history(self) -> None:
        """Read the status history, which shows restarts, whenever the job has changed."""
        job = self.watcher.job
        changed = f"{job.current_status} {job.updated_at}"
        if self._history_of != changed:
            await self.watcher.read_history()
            self._history_of = changed

    @contextmanager
    def _noting(self, part: str) -> Iterator[None]:
        """Note if the server fails to answer for this part."""
        failing = {part}
        with suppress(ErrorAnswer, InvalidAnswer):
            yield
            failing.clear()
        self.watcher.change(failing=(self.watcher.snapshot.failing - {part}) | failing)
