"""Stop a single running job: now, or once it has stored its next checkpoint.

The readers of checkpoints are imported with the first question: Home's start does not wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from textual.app import App
from textual.worker import Worker

from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.analysis.fleet.batches import Batch, name_of
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.session import Session
from tui.screens.dialogs import StopAnswer, StopScreen
from tui.widgets.background import run_in_background

LIST_TIMEOUT_S = 1.5
"""The question waits no longer for the list of checkpoints; typed keys wait for it ``LONGEST_WAIT_S``."""
WAITS = "It will be stopped after its next checkpoint, as long as this dashboard stays open."
STALLED = "The run has stalled: it may never save its next checkpoint."


class JobStopper:
    """Asks when to stop a job; ``share`` is called with the ids of those that stop later."""

    def __init__(
        self, app: App[Any], session: Session | None, share: Callable[[frozenset[str]], object]
    ) -> None:
        self._app = app
        self._session = session
        self._share = share
        self._waiting: dict[str, Worker[None]] = {}

    @property
    def waiting(self) -> int:
        """Number of jobs that will be stopped after their next checkpoint."""
        return len(self._waiting)

    async def wants_now(self, batch: Batch, run: RunSnapshot | None) -> bool:
        """Ask when to stop the only job of the batch; return True to stop it now.

        Every other answer is handled here.
        """
        (job,) = batch.jobs
        lost = await self._unsaved(job, run)
        waits = job.id in self._waiting
        stalled = run is not None and any(finding.kind.halts for finding in run.findings)
        about = [batch.consequence, lost, STALLED if stalled else "", WAITS if waits else ""]
        answer: StopAnswer = await self._app.push_screen_wait(
            StopScreen(batch.question, "\n".join(filter(None, about)), waits=waits)
        )
        if answer == "after checkpoint":
            self._wait_for_checkpoint(job)
        elif waits and answer != "as before":
            self._forget(job)
            if answer == "keep":
                self._app.notify(f"{name_of(job)} keeps running.")
        return answer == "now"

    async def _unsaved(self, job: TrainingJob, run: RunSnapshot | None) -> str:
        """Return what stopping now would lose; empty if that is not known."""
        from tui.analysis.checkpoints.unsaved import unsaved_work
        from tui.readers.watcher import RunWatcher

        if (run is None or run.checkpoints is None) and self._session is not None:
            watcher = RunWatcher(self._session.client, job)
            with suppress(RequestError, TimeoutError):
                async with asyncio.timeout(LIST_TIMEOUT_S):
                    await watcher.read_checkpoints()
                    await watcher.read_history()
            run = watcher.snapshot if run is None else replace(run, checkpoints=watcher.snapshot.checkpoints)
        if run is None or run.checkpoints is None:
            return ""
        lost = unsaved_work(
            job,
            run.checkpoints,
            run.server_now,
            running_since=run.running_since,
            price_per_minute=run.price_per_minute,
        )
        return lost.words if lost is not None else ""

    def _wait_for_checkpoint(self, job: TrainingJob) -> None:
        self._waiting[job.id] = run_in_background(
            self._app, partial(self._stop_later, job), "later stop", group="act"
        )
        self._changed()
        self._app.notify(f"{name_of(job)} stops after its next checkpoint. Keep this dashboard open.")

    async def _stop_later(self, job: TrainingJob) -> None:
        if self._session is None:
            return
        from tui.readers.next_checkpoint import next_checkpoint

        name = name_of(job)
        try:
            saved, _ = await next_checkpoint(self._session.client, job, self._session.clock)
            if saved is not None:
                await self._session.client.jobs.stop(job.project_id, job.id)
        except RequestError as error:
            self._app.notify(str(error), title=f"Not stopped: {name}", severity="error", timeout=30)
        else:
            done = f"{name}: stopping after {saved.checkpoint_id}." if saved else f"{name} has already ended."
            self._app.notify(done)
        finally:
            self._waiting.pop(job.id, None)
            self._changed()

    def _forget(self, job: TrainingJob) -> None:
        worker = self._waiting.pop(job.id, None)
        if worker is not None:
            worker.cancel()
        self._changed()

    def _changed(self) -> None:
        self._share(frozenset(self._waiting))
