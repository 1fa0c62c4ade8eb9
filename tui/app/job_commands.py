"""Changes of jobs: confirm, carry out and report; for one job or for several. Also bookmarks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App

from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.actions import Scope
from tui.analysis.fleet.batches import Batch, Verb, batch_of, name_of
from tui.analysis.status import status_view
from tui.readers.session import Session
from tui.screens.base import AppScreen
from tui.screens.dialogs import ConfirmScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import (
    BatchRequested,
    BookmarkRequested,
    BrowserRequested,
    Handlers,
    RecreateJobRequested,
    StopJobRequested,
)
from tui.system.external_programs import open_in_browser
from tui.text.sanitize import sanitize

FAILURE_SHOWN_S = 20.0
NOT_DONE_TOAST_S = 10.0

Change = Callable[[Session], Awaitable[TrainingJob]]


class JobCommands:
    """Carries out what users request for jobs, after confirmation; without a session it only asks."""

    def __init__(self, app: App[Any], session: Session | None) -> None:
        self._app = app
        self._session = session

    @property
    def handlers(self) -> Handlers:
        return {
            StopJobRequested: self.stop,
            RecreateJobRequested: self.recreate,
            BatchRequested: self.batch,
            BookmarkRequested: self.bookmark,
            BrowserRequested: self.browse,
        }

    def stop(self, message: StopJobRequested) -> None:
        job = message.job
        name = sanitize(job.name or job.id)
        if job.is_finished:
            word = status_view(job.current_status).word
            self._app.notify(f"{name} has already ended ({word}); nothing to stop.")
            return
        self._ask(
            ConfirmScreen(
                f"Stop {name} ({job.id})?",
                "The job stops now. Logs and stored checkpoints are kept.",
                "Stop",
                "Keep running",
            ),
            lambda session: session.stop_job(job),
            lambda _stopped: f"Stopping {name}.",
        )

    def recreate(self, message: RecreateJobRequested) -> None:
        job = message.job
        name = sanitize(job.name or job.id)
        self._ask(
            ConfirmScreen(
                f"Run {name} ({job.id}) again?",
                "Starts a new job with the same code, configuration and hardware.",
                "Run again",
            ),
            lambda session: session.recreate_job(job),
            lambda made: f"{sanitize(made.name or name)} started again as {made.id}.",
        )

    def _ask(self, question: ConfirmScreen, act: Change, done: Callable[[TrainingJob], str]) -> None:
        def answered(confirmed: bool | None) -> None:
            if confirmed and self._session is not None:
                self._app.run_worker(
                    self._act(self._session, act, done), name="change", group="act", exit_on_error=False
                )

        self._app.push_screen(question, answered)

    async def _act(self, session: Session, act: Change, done: Callable[[TrainingJob], str]) -> None:
        try:
            job = await act(session)
        except RequestError as error:
            title = "Possibly not done" if error.may_have_happened else "Not done"
            self._app.notify(sanitize(str(error)), title=title, severity="error", timeout=NOT_DONE_TOAST_S)
            return
        self._app.notify(done(job))
        self._refresh(Scope.HOME, Scope.JOB)

    def _refresh(self, *scopes: Scope) -> None:
        for screen in self._app.screen_stack:
            if isinstance(screen, AppScreen) and not set(scopes).isdisjoint(screen.SCOPES):
                screen.action_refresh()

    def batch(self, message: BatchRequested) -> None:
        """Confirm an action on several jobs, run it job by job, and report the results."""
        batch = batch_of(message.verb, message.jobs)
        if not batch.jobs:
            self._app.notify(batch.nothing_fits, severity="warning")
        else:
            self._app.run_worker(self._run_batch(batch), name="batch", group="batch", exit_on_error=False)

    async def _run_batch(self, batch: Batch) -> None:
        question = ConfirmScreen(batch.question, batch.consequence, batch.yes)
        if not await self._app.push_screen_wait(question) or self._session is None:
            return
        failures = []
        for job in batch.jobs:
            try:
                await act(self._session, batch.verb, job)
            except RequestError as error:
                failures.append((job, str(error)))
        title, text = batch.outcome(failures)
        if failures:
            self._app.notify(text, title=title, severity="error", timeout=FAILURE_SHOWN_S)
        else:
            self._app.notify(text, title=title)
        for screen in self._app.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.unmark(job.id for job in batch.jobs)
        self._refresh(Scope.HOME)

    def browse(self, message: BrowserRequested) -> None:
        """Open the job's page in the browser; without one, copy its link."""
        if self._session is None:
            return
        link = self._session.job_link(message.job)
        if self._app.is_web:
            self._app.open_url(link)
        elif not open_in_browser(link):
            self._app.copy_to_clipboard(link)
            self._app.notify(f"No browser found; link copied: {link}")

    def bookmark(self, message: BookmarkRequested) -> None:
        name = name_of(message.job)
        for screen in self._app.screen_stack:
            if isinstance(screen, HomeScreen):
                has_one = screen.toggle_bookmark(message.job.id)
                self._app.notify(f"★ {name} bookmarked." if has_one else f"Bookmark of {name} removed.")


async def act(session: Session, verb: Verb, job: TrainingJob) -> None:
    """Apply the action to one job; raises the client's errors."""
    match verb:
        case Verb.STOP:
            await session.stop_job(job)
        case Verb.RECREATE:
            await session.recreate_job(job)
        case Verb.DELETE:
            await session.delete_job(job)
