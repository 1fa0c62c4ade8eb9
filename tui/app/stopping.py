"""Stop a single running job: now, once it has stored its next checkpoint, or on conditions.

The readers of runs are imported with the first question: Home's start does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker

from api_client.errors import RequestError
from api_client.models import JobStatus, TrainingJob
from tui.analysis.fleet.batches import Batch, name_of
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.session import Session
from tui.screens.dialogs import StopAnswer, StopScreen
from tui.widgets.background import run_in_background

if TYPE_CHECKING:
    from tui.alerts.alert import Alert
    from tui.guard.rules import GuardRules

AFTER_CHECKPOINT = "stops after its next checkpoint"
GUARD_EVENTS = frozenset({"stop-planned", "stop-withdrawn", "stopped", "not-stopped", "blind", "sighted"})
"""Events of a guard that the dashboard does not report already."""
STALLED = "The run has stalled: it may never save its next checkpoint."


class JobStopper:
    """Asks when to stop a job; ``share`` gets the ids of jobs to stop later, and the conditions in words."""

    def __init__(
        self, app: App[Any], session: Session | None, share: Callable[[Mapping[str, str]], object]
    ) -> None:
        self._app = app
        self._session = session
        self._share = share
        self._waiting: dict[str, tuple[Worker[None], str]] = {}

    @property
    def waiting(self) -> int:
        """Number of jobs that will be stopped later."""
        return len(self._waiting)

    async def wants_now(self, batch: Batch, run: RunSnapshot | None) -> bool:
        """Ask when to stop the only job of the batch; return True to stop it now.

        Every other answer is handled here.
        """
        (job,) = batch.jobs
        _, later = self._waiting.get(job.id, (None, ""))
        waits = f"It {later}, as long as this dashboard stays open." if later else ""
        stalled = run is not None and any(finding.kind.halts for finding in run.findings)
        about = filter(None, [batch.consequence, STALLED if stalled else "", waits])
        may_lose_work = job.current_status == JobStatus.RUNNING and self._session is not None
        question = StopScreen(
            batch.question,
            "\n".join(about),
            waits=bool(waits),
            read=self._read_rules,
            unsaved=partial(self._unsaved, job, run) if may_lose_work else None,
        )
        answer: StopAnswer = await self._app.push_screen_wait(question)
        if answer == "after checkpoint":
            self._later(job, partial(self._stop_after_checkpoint, job), AFTER_CHECKPOINT)
        elif not isinstance(answer, str):
            self._stop_on(job, answer)
        elif waits and answer != "as before":
            self._forget(job)
            if answer == "keep":
                self._app.notify(f"{name_of(job)} keeps running.")
        return answer == "now"

    async def _unsaved(self, job: TrainingJob, run: RunSnapshot | None) -> str:
        """Return what stopping now would lose; empty if that is not known."""
        from tui.readers.stopping import read_unsaved_words

        return await read_unsaved_words(self._session.client, job, run) if self._session is not None else ""

    def _read_rules(self, typed: str) -> GuardRules:
        from tui.guard.conditions import read_rules

        return read_rules(typed, self._session.clock.now() if self._session else datetime.now(UTC))

    def _stop_on(self, job: TrainingJob, rules: GuardRules) -> None:
        from tui.guard.conditions import causes

        saves = " after a checkpoint" if rules.after_checkpoint else ""
        self._later(job, partial(self._guard, job, rules), f"stops{saves} on {causes(rules)}")

    def _later(self, job: TrainingJob, work: Callable[[], Coroutine[Any, Any, None]], when: str) -> None:
        worker = run_in_background(self._app, work, "later stop", group="act")
        self._waiting[job.id] = (worker, when)
        self._changed()
        self._app.notify(f"{name_of(job)} {when}. Keep this dashboard open.")

    async def _guard(self, job: TrainingJob, rules: GuardRules) -> None:
        """Watch the run until it ends, and stop it by the rules; what the guard does is notified."""
        if self._session is None:
            return
        from tui.guard.memory import GuardMemory
        from tui.guard.watch import Guard, Reporting

        def show(alert: Alert) -> None:
            if alert.event in GUARD_EVENTS:
                self._app.notify(alert.text, title=alert.title, severity="warning", timeout=30)

        try:
            await Guard(self._session.client, rules, GuardMemory(), Reporting(show)).run([job])
        finally:
            self._waiting.pop(job.id, None)
            self._changed()

    async def _stop_after_checkpoint(self, job: TrainingJob) -> None:
        if self._session is None:
            return
        from tui.readers.stopping import next_checkpoint

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
        worker, _ = self._waiting.pop(job.id, (None, ""))
        if worker is not None:
            worker.cancel()
        self._changed()

    def _changed(self) -> None:
        self._share({job_id: when for job_id, (_, when) in self._waiting.items()})
