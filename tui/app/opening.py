"""Open screens on request, each with its feed.

A screen's module is imported when the first such screen is opened: Home's start does not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker

from api_client.errors import NotFound, RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import TrainingJob
from tui.actions import Scope
from tui.app.history import HistoryEntry, Navigation
from tui.app.teams import Teams
from tui.readers.session import Session
from tui.screens import messages
from tui.screens.base import AppScreen
from tui.settings.loading import Loaded
from tui.settings.remembered import Memory
from tui.text.sanitize import sanitize
from tui.widgets.background import run_in_background

if TYPE_CHECKING:
    from tui.feeds.comparison import RunCache
    from tui.readers.recorded_runs import OpenRecordings, RecordedRun
    from tui.screens.job.layout import JobLayout


class ScreenOpener:
    """Opens the screens of a session."""

    def __init__(
        self,
        app: App[Any],
        session: Session,
        navigation: Navigation,
        teams: Teams,
        settings: Loaded,
        memory: Memory,
        recorded: OpenRecordings | None = None,
    ) -> None:
        self._app = app
        self._session = session
        self._navigation = navigation
        self._teams = teams
        self._settings = settings
        self._memory = memory
        self._recorded = recorded
        self._compared_runs: RunCache | None = None

    @property
    def handlers(self) -> messages.Handlers:
        return {
            messages.OpenJobRequested: self.job,
            messages.CompareJobsRequested: self.compare,
            messages.CapacityRequested: self.capacity,
            messages.WhyRequested: self.why,
            messages.OpenCacheRequested: self.cache,
            messages.OpenCheckpointRequested: self.checkpoint,
            messages.CompareCheckpointsRequested: self.compare_checkpoints,
            messages.NewJobRequested: self.new_job,
            messages.JobSubmitted: self.submitted,
            messages.DeployRequested: self.deploy,
        }

    # One job

    def job(self, message: messages.OpenJobRequested) -> None:
        self.show_job(message.job)

    def show_job(self, job: TrainingJob, tab: str | None = None) -> None:
        from tui.feeds.run import RunFeed
        from tui.screens.job.screen import JobScreen

        wanted = self._settings.configuration
        feed_with = partial(
            RunFeed,
            self._session,
            rules=wanted.health,
            patterns=wanted.progress_patterns,
            prices=wanted.prices,
            findings=self._teams.recent_findings(job),
            status_interval_s=wanted.refresh.status_s,
            metrics_interval_s=wanted.refresh.metrics_s,
            checkpoints_interval_s=wanted.refresh.checkpoints_s,
        )
        screen = JobScreen(
            job,
            feed_with,
            tab=tab,
            layout=self._layout(),
            remember=self._remember,
            recorded=self._recorded_run(job),
        )
        self._navigation.push(screen, HistoryEntry(("job", job.id), partial(self.show_job, job)))

    def _recorded_run(self, job: TrainingJob) -> RecordedRun | None:
        opened, wanted = self._recorded, self._settings.configuration
        if opened is None or self._session.clock is not opened.clock:
            return None
        return opened.run(job.id, wanted.health, wanted.progress_patterns)

    def _layout(self) -> JobLayout:
        """Return the remembered layout, in which explicit settings replace what was remembered."""
        from tui.screens.job.layout import JobLayout
        from tui.widgets.log_view.options import LogOptions

        wanted = self._settings.configuration.logs
        log = LogOptions(
            time=wanted.time,
            wrap=wanted.wrap,
            min_level=wanted.min_level,
            collapse_progress=wanted.collapse_progress,
            fold_tracebacks=wanted.fold_tracebacks,
            max_lines=wanted.max_lines_in_memory,
        )
        explicit = frozenset(name for name in asdict(log) if self._settings.is_given(f"logs.{name}"))
        return JobLayout(log=log).recalled(self._memory.state.job, explicit)

    def _remember(self, layout: JobLayout) -> None:
        self._memory.put(job=layout.as_state())

    def find_job(self, job_id: str, tab: str | None) -> None:
        """Open a job by its id, retrying while the server is unreachable."""
        run_in_background(self._app, partial(self._find_job, job_id, tab), "find job", exclusive=True)

    async def _find_job(self, job_id: str, tab: str | None) -> None:
        async def find() -> TrainingJob | None:
            with suppress(NotFound):
                return await self._session.find_job(job_id)
            return None

        job = await retrying(find, LASTING, sleep=self._session.clock.sleep)
        if job is not None:
            self.show_job(job, tab)
        else:
            self._app.notify(f"No job {sanitize(job_id)} on {self._session.place}.", severity="error")

    # Several jobs

    def compare(self, message: messages.CompareJobsRequested) -> Worker[None] | None:
        if len(message.jobs) == 1:
            work = partial(self._compare_with_previous, message.jobs[0])
            return run_in_background(self._app, work, "comparison", group="compare", exclusive=True)
        if message.jobs:
            self._show_comparison(tuple(message.jobs))
        return None

    async def _compare_with_previous(self, job: TrainingJob) -> None:
        from tui.feeds.comparison import job_before

        try:
            before = await job_before(self._session, job)
        except RequestError as error:
            self._app.notify(str(error), title="Can't compare", severity="error")
            return
        if before is None:
            self._app.notify("No earlier job in this project; mark jobs with space on Home.")
        else:
            self._show_comparison((before, job))

    def _show_comparison(self, jobs: Sequence[TrainingJob]) -> None:
        from tui.feeds.comparison import ComparisonFeed, RunCache
        from tui.screens.compare import CompareRunsScreen

        if self._compared_runs is None:
            self._compared_runs = RunCache()
        wanted = self._settings.configuration
        feed_with = partial(
            ComparisonFeed,
            self._session,
            self._compared_runs,
            jobs,
            patterns=wanted.progress_patterns,
            own_prices=wanted.prices,
        )
        key = ("compare", *(job.id for job in jobs))
        place = HistoryEntry(key, partial(self._show_comparison, jobs))
        self._navigation.push(CompareRunsScreen(jobs, feed_with), place)

    def capacity(self, message: messages.CapacityRequested) -> None:
        from tui.feeds.capacity import CapacityFeed
        from tui.screens.capacity import CapacityScreen

        screen = CapacityScreen(self._session.place, partial(CapacityFeed, self._session))
        self._navigation.push(screen, HistoryEntry(("capacity",), partial(self.capacity, message)))

    def why(self, message: messages.WhyRequested) -> None:
        from tui.feeds.why import WhyFeed
        from tui.screens.why import WhyScreen

        job = message.run.job
        screen = WhyScreen(job, partial(WhyFeed, self._session, message.run, message.latest))
        self._navigation.push(screen, HistoryEntry(("why", job.id), partial(self.why, message)))

    # Files

    def _now_s(self) -> float:
        return self._session.clock.now().timestamp()

    def cache(self, message: messages.OpenCacheRequested) -> None:
        from tui.feeds.files import CacheFeed
        from tui.screens.cache import CacheScreen

        screen = CacheScreen(
            message.name, partial(CacheFeed, self._session, message.project_id), now_s=self._now_s
        )
        place = HistoryEntry(("cache", message.project_id), partial(self.cache, message))
        self._navigation.push(screen, place)

    def checkpoint(self, message: messages.OpenCheckpointRequested) -> None:
        from tui.feeds.files import CheckpointFilesFeed
        from tui.screens.files.screen import FilesScreen

        job, checkpoint = message.job, message.checkpoint
        feed_with = partial(CheckpointFilesFeed, self._session, job, checkpoint)
        key = ("files", job.id, checkpoint.checkpoint_id)
        place = HistoryEntry(key, partial(self.checkpoint, message))
        self._navigation.push(FilesScreen(job, checkpoint, feed_with, now_s=self._now_s), place)

    def compare_checkpoints(self, message: messages.CompareCheckpointsRequested) -> None:
        from tui.screens.files.compare import CompareCheckpointsScreen

        job, left, right = message.job, message.left, message.right
        list_files = partial(self._session.client.checkpoints.files_of, job.project_id, job.id)
        screen = CompareCheckpointsScreen(left, right, list_files)
        key = ("checkpoints", job.id, left.name, right.name)
        self._navigation.push(screen, HistoryEntry(key, partial(self.compare_checkpoints, message)))

    # New jobs and deployments

    def new_job(self, _message: messages.NewJobRequested) -> None:
        from tui.feeds.submission import SubmissionFeed
        from tui.screens.submit import SubmitScreen

        feed_with = partial(SubmissionFeed, self._session, team=self._teams.team)
        self._navigation.push(SubmitScreen(feed_with, self._session.place))

    def submitted(self, message: messages.JobSubmitted) -> None:
        screen = self._app.screen
        if isinstance(screen, AppScreen) and Scope.SUBMIT in screen.SCOPES:
            self._app.pop_screen()
            self.show_job(message.job)

    def deploy(self, message: messages.DeployRequested) -> None:
        from tui.feeds.deployment import DeployFeed
        from tui.screens.deploy.screen import DeployScreen
        from tui.wizard.state import Answers

        given = Answers(
            job_id=message.job.id if message.job is not None else None,
            checkpoint_names=message.checkpoints,
        )
        wanted = self._settings.configuration
        feed_with = partial(
            DeployFeed,
            self._session,
            given,
            known=message.run,
            rules=wanted.health,
            patterns=wanted.progress_patterns,
        )
        self._navigation.push(DeployScreen(feed_with, self._session.place))
