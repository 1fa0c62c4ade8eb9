"""Changes of jobs: confirm, carry out and report; for one job or for several. Also bookmarks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual import on, work

from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.analysis.fleet.batches import Batch, Verb, batch_of, name_of
from tui.analysis.status import status_view
from tui.app.downloads import DownloadsMixin
from tui.readers.session import Session
from tui.screens.confirm import ConfirmScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.kinds import is_job_screen
from tui.screens.messages import BatchRequested, BookmarkRequested, RecreateJobRequested, StopJobRequested
from tui.text.sanitize import sanitize

READONLY_FLAG = "flag --readonly"
FAILURE_SHOWN_S = 20.0


class BatchMixin(DownloadsMixin):
    """App mixin that confirms an action on several jobs, runs it job by job, and reports the results."""

    _read_only_by: str
    """Description of the setting that forbids changes; empty if changes are allowed."""

    def _may_change(self) -> bool:
        """Return True if changes are allowed; otherwise notify the user of the setting that forbids them."""
        if self._read_only_by:
            self.notify(f"This dashboard is read-only ({self._read_only_by}).", severity="warning")
        return not self._read_only_by

    @on(BatchRequested)
    def _ask_about_batch(self, message: BatchRequested) -> None:
        batch = batch_of(message.verb, message.jobs)
        if not self._may_change():
            return
        if not batch.jobs:
            self.notify(batch.nothing_fits, severity="warning")
        else:
            self._confirm_batch(batch)

    @on(BookmarkRequested)
    def _bookmark(self, message: BookmarkRequested) -> None:
        name = name_of(message.job)
        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen):
                has_one = screen.toggle_bookmark(message.job.id)
                self.notify(f"★ {name} bookmarked." if has_one else f"Bookmark of {name} removed.")

    @work(group="batch")
    async def _confirm_batch(self, batch: Batch) -> None:
        question = ConfirmScreen(batch.question, batch.consequence, batch.yes)
        if not await self.push_screen_wait(question) or self._session is None:
            return
        session, failures = self._session, []
        for job in batch.jobs:
            try:
                await act(session, batch.verb, job)
            except RequestError as error:
                failures.append((job, str(error)))
        title, text = batch.outcome(failures)
        severity, shown_s = ("error", FAILURE_SHOWN_S) if failures else ("information", None)
        self.notify(text, title=title, severity=severity, timeout=shown_s)  # type: ignore[arg-type]
        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.unmark(job.id for job in batch.jobs)
                screen.action_refresh()


async def act(session: Session, verb: Verb, job: TrainingJob) -> None:
    """Apply the action to one job; raises the client's errors."""
    match verb:
        case Verb.STOP:
            await session.stop_job(job)
        case Verb.RECREATE:
            await session.recreate_job(job)
        case Verb.DELETE:
            await session.delete_job(job)


NOT_DONE_TOAST_S = 10.0

Change = Callable[[Session], Awaitable[TrainingJob]]


class JobChangesMixin(BatchMixin):
    """App mixin that confirms a change of a job and reports its result."""

    @on(StopJobRequested)
    def _ask_to_stop(self, message: StopJobRequested) -> None:
        job = message.job
        name = sanitize(job.name or job.id)
        if job.is_finished:
            self.notify(
                f"{name} has already ended ({status_view(job.current_status).word}); nothing to stop."
            )
            return
        self._ask(
            f"Stop {name} ({job.id})?",
            "The job stops now. Logs and stored checkpoints are kept.",
            "Stop",
            lambda session: session.stop_job(job),
            lambda _stopped: f"Stopping {name}.",
            no="Keep running",
        )

    @on(RecreateJobRequested)
    def _ask_to_recreate(self, message: RecreateJobRequested) -> None:
        job = message.job
        name = sanitize(job.name or job.id)
        self._ask(
            f"Run {name} ({job.id}) again?",
            "Starts a new job with the same code, configuration and hardware.",
            "Run again",
            lambda session: session.recreate_job(job),
            lambda made: f"{sanitize(made.name or name)} started again as {made.id}.",
        )

    def _ask(
        self,
        question: str,
        consequence: str,
        yes: str,
        act: Change,
        done: Callable[[TrainingJob], str],
        no: str = "Cancel",
    ) -> None:
        """Confirm, then act; refuse if the dashboard is read-only."""
        if not self._may_change():
            return

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                self._act(act, done)

        self.push_screen(ConfirmScreen(question, consequence, yes, no), answered)

    @work(group="act")
    async def _act(self, act: Change, done: Callable[[TrainingJob], str]) -> None:
        assert self._session is not None
        try:
            job = await act(self._session)
        except RequestError as error:
            text = sanitize(str(error))
            title = "Possibly not done" if error.may_have_happened else "Not done"
            self.notify(text, title=title, severity="error", timeout=NOT_DONE_TOAST_S, markup=False)
            return
        self.notify(done(job))
        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen) or is_job_screen(screen):
                screen.action_refresh()
