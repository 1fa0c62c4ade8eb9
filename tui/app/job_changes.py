"""Changes of jobs and deletions of projects: confirm them, carry them out and report the outcome.

A single running job can be stopped now, after its next checkpoint, or on conditions. Modules for later stops
are imported when they are needed, so that Home starts faster.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.worker import Worker

from api_client.errors import RequestError
from api_client.vocabulary import JobStatus
from tui.actions.table import Scope
from tui.analysis.fleet.batches import Batch, ProjectDeletion, Verb, batch_of, name_of
from tui.app.service import BaseApp, Service
from tui.screens import messages
from tui.screens.base import AppScreen
from tui.screens.home.screen import HomeScreen
from tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from api_client.models import TrainingJob
    from tui.alerts.alert import Alert
    from tui.analysis.run.snapshot import RunSnapshot
    from tui.guard.rules import GuardRules
    from tui.readers.session import Session
    from tui.screens.dialogs import StopAnswer

FAILURE_NOTICE_S = 20.0


class JobChanges(Service):
    """Carries out the user's requests about jobs and projects, after confirmation."""

    def __init__(self, app: BaseApp) -> None:
        super().__init__(app)
        self.stopper = JobStopper(app)

    @property
    def handlers(self) -> messages.Handlers:
        return {
            messages.BatchRequested: self.start_batch,
            messages.DeleteProjectRequested: self.delete_project,
            messages.BookmarkRequested: self.toggle_bookmark,
            messages.BrowserRequested: self.open_job_page,
            messages.ResumeRequested: self.copy_resume_command,
        }

    def start_batch(self, message: messages.BatchRequested) -> Worker[None] | None:
        batch = batch_of(message.verb, message.jobs)
        if not batch.jobs:
            self._app.notify(batch.nothing_fits, severity="warning")
            return None
        return self._run(partial(self._run_batch, batch, message.run), "batch")

    async def _is_confirmed(self, batch: Batch, run: RunSnapshot | None) -> bool:
        if batch.verb is Verb.STOP and len(batch.jobs) == 1:
            return await self.stopper.ask_whether_to_stop_now(batch, run)
        from tui.screens.dialogs import ConfirmScreen

        dialog = ConfirmScreen(batch.question, batch.consequence, batch.yes, batch.no)
        return await self._app.push_screen_wait(dialog)

    async def _run_batch(self, batch: Batch, run: RunSnapshot | None) -> None:
        if not await self._is_confirmed(batch, run) or self._app.session is None:
            return
        failures: list[tuple[TrainingJob, str]] = []
        created_jobs: list[TrainingJob] = []
        may_have_changed = False
        for job in batch.jobs:
            try:
                created_jobs += await change_job(self._app.session, batch.verb, job)
            except RequestError as error:
                failures.append((job, str(error)))
                may_have_changed |= error.may_have_happened
        title, text = batch.outcome(failures, created_jobs)
        if failures:
            title = f"Possibly {title[:1].lower()}{title[1:]}" if may_have_changed else title
            self._app.notify(text, title=title, severity="error", timeout=FAILURE_NOTICE_S)
        else:
            self._app.notify(text)
        self._refresh(batch.jobs)

    def _refresh(self, changed_jobs: Sequence[TrainingJob]) -> None:
        for screen in self._app.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.unmark(job.id for job in changed_jobs)
            if isinstance(screen, AppScreen) and {Scope.HOME, Scope.JOB} & set(screen.SCOPES):
                screen.action_refresh()

    def delete_project(self, message: messages.DeleteProjectRequested) -> Worker[None] | None:
        project = message.project
        if project.refusal:
            self._app.notify(project.refusal, severity="warning")
            return None
        return self._run(partial(self._run_deletion, project), "delete project", "batch")

    async def _run_deletion(self, project: ProjectDeletion) -> None:
        from tui.screens.dialogs import ConfirmScreen

        dialog = ConfirmScreen(project.question, project.consequence, "Delete")
        if not await self._app.push_screen_wait(dialog) or self._app.session is None:
            return
        try:
            await self._app.session.client.projects.delete(project.project_id)
        except RequestError as error:
            title = "Possibly not deleted" if error.may_have_happened else "Not deleted"
            self._app.notify(
                f"✗ {sanitize(project.name)}: {sanitize(str(error))}",
                title=title,
                severity="error",
                timeout=FAILURE_NOTICE_S,
            )
        else:
            self._app.notify(f"{sanitize(project.name)}: deleted.")
        self._refresh(project.jobs)

    def open_job_page(self, message: messages.BrowserRequested) -> None:
        if self._app.session is None:
            return
        from tui.system.external_programs import open_in_browser

        if self._app.session.connection.recorded is not None:
            self._app.notify("A recording has no page in the browser.")
            return
        link = self._app.session.client.job_link(message.job.project_id, message.job.id)
        if self._app.is_web:
            self._app.open_url(link)
        elif not open_in_browser(link):
            self._app.copy_to_clipboard(link)
            self._app.notify(f"No browser found; link copied: {link}")

    def copy_resume_command(self, message: messages.ResumeRequested) -> None:
        remote = self._app.session.remote if self._app.session is not None else None
        command = remote.command_line("resume", message.job.id, changes=True) if remote is not None else ""
        if command:
            self._app.post_message(messages.CopyRequested(command, "command"))
        else:
            self._app.notify(
                "This server ends with the dashboard, so a copied command could not reach it. Download the"
                " source code, add the LoadCheckpointConfig of a checkpoint to its config, and submit it as a"
                " new job.",
                severity="warning",
            )

    def toggle_bookmark(self, message: messages.BookmarkRequested) -> None:
        name = name_of(message.job)
        for screen in self._app.screen_stack:
            if isinstance(screen, HomeScreen):
                is_bookmarked = screen.toggle_bookmark(message.job.id)
                self._app.notify(f"★ {name} bookmarked." if is_bookmarked else f"Bookmark of {name} removed.")


async def change_job(session: Session, verb: Verb, job: TrainingJob) -> list[TrainingJob]:
    """Stop, recreate or delete a job; return a list of the new job if recreated, else an empty list.

    Raises the client's errors.
    """
    jobs = session.client.jobs
    match verb:
        case Verb.STOP:
            await jobs.stop(job.project_id, job.id)
        case Verb.RECREATE:
            return [await jobs.recreate(job.project_id, job.id)]
        case Verb.DELETE:
            await jobs.delete(job.project_id, job.id)
    return []


class JobStopper(Service):
    """Asks when to stop a job, and carries out the planned stops."""

    def __init__(self, app: BaseApp) -> None:
        super().__init__(app)
        self._planned_stops: dict[str, tuple[Worker[None], str]] = {}
        """By job ID, the worker of a planned stop, and a text such as "stops after its next checkpoint"."""

    @property
    def planned_count(self) -> int:
        """Number of jobs that will be stopped later."""
        return len(self._planned_stops)

    async def ask_whether_to_stop_now(self, batch: Batch, run: RunSnapshot | None) -> bool:
        """Ask when to stop the only job of the batch; return True to stop it now.

        If the answer is to stop the job later or never, this method plans or cancels the stop.
        """
        from tui.screens.dialogs import StopScreen

        (job,) = batch.jobs
        _, plan_text = self._planned_stops.get(job.id, (None, ""))
        planned_text = f"It {plan_text}, as long as this dashboard stays open." if plan_text else ""
        is_stalled = run is not None and any(finding.kind.halts for finding in run.findings)
        stall_warning = "The run has stalled: it may never save its next checkpoint." if is_stalled else ""
        consequences = filter(None, [batch.consequence, stall_warning, planned_text])
        may_lose_work = job.current_status == JobStatus.RUNNING and self._app.session is not None
        dialog = StopScreen(
            batch.question,
            "\n".join(consequences),
            is_planned=bool(planned_text),
            parse_rules=self._parse_rules,
            read_unsaved=partial(self._unsaved_text, job, run) if may_lose_work else None,
        )
        answer: StopAnswer = await self._app.push_screen_wait(dialog)
        if answer == "after checkpoint":
            self._plan_stop(job, partial(self._stop_after_checkpoint, job), "stops after its next checkpoint")
        elif not isinstance(answer, str):
            self._plan_guard(job, answer)
        elif planned_text and answer != "as before":
            self._cancel_stop(job)
            if answer == "keep":
                self._app.notify(f"{name_of(job)} keeps running.")
        return answer == "now"

    async def _unsaved_text(self, job: TrainingJob, run: RunSnapshot | None) -> str:
        """Return a sentence about the work that would be lost by stopping the job now; empty if unknown."""
        from tui.readers.stopping import read_unsaved_words

        session = self._app.session
        return "" if session is None else await read_unsaved_words(session.client, job, run)

    def _parse_rules(self, text: str) -> GuardRules:
        from tui.guard.conditions import parse_rules

        return parse_rules(text, self._app.session.clock.now() if self._app.session else datetime.now(UTC))

    def _plan_guard(self, job: TrainingJob, rules: GuardRules) -> None:
        from tui.guard.conditions import stop_causes

        checkpoint_text = " after a checkpoint" if rules.after_checkpoint else ""
        self._plan_stop(
            job, partial(self._run_guard, job, rules), f"stops{checkpoint_text} on {stop_causes(rules)}"
        )

    def _plan_stop(
        self, job: TrainingJob, work: Callable[[], Coroutine[Any, Any, None]], plan_text: str
    ) -> None:
        worker = self._run(work, "later stop", "act")
        self._planned_stops[job.id] = (worker, plan_text)
        self._publish_plans()
        self._app.notify(f"{name_of(job)} {plan_text}. Keep this dashboard open.")

    async def _run_guard(self, job: TrainingJob, rules: GuardRules) -> None:
        """Watch the run until it ends and stop it according to the rules; notify about each step."""
        if self._app.session is None:
            return
        from tui.guard.memory import GuardMemory
        from tui.guard.watch import Guard, Reporting

        # The dashboard itself reports the other events, such as findings.
        reported_events = ("stop-planned", "stop-withdrawn", "stopped", "not-stopped", "blind", "sighted")

        def show_alert(alert: Alert) -> None:
            if alert.event in reported_events:
                self._app.notify(alert.text, title=alert.title, severity="warning", timeout=30)

        try:
            await Guard(self._app.session.client, rules, GuardMemory(), Reporting(show_alert)).run([job])
        finally:
            self._planned_stops.pop(job.id, None)
            self._publish_plans()

    async def _stop_after_checkpoint(self, job: TrainingJob) -> None:
        if self._app.session is None:
            return
        from tui.readers.stopping import next_checkpoint

        name = name_of(job)
        try:
            checkpoint, _ = await next_checkpoint(self._app.session.client, job)
            if checkpoint is not None:
                await self._app.session.client.jobs.stop(job.project_id, job.id)
        except RequestError as error:
            self._app.notify(str(error), title=f"Not stopped: {name}", severity="error", timeout=30)
        else:
            stopping_text = f"{name}: stopping after {checkpoint.checkpoint_id}." if checkpoint else ""
            self._app.notify(stopping_text or f"{name} has already ended.")
        finally:
            self._planned_stops.pop(job.id, None)
            self._publish_plans()

    def _cancel_stop(self, job: TrainingJob) -> None:
        worker, _ = self._planned_stops.pop(job.id, (None, ""))
        if worker is not None:
            worker.cancel()
        self._publish_plans()

    def _publish_plans(self) -> None:
        self._app.planned_stops = {
            job_id: plan_text for job_id, (_, plan_text) in self._planned_stops.items()
        }
