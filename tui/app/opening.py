"""Open screens when they are requested by message, and export tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.reactive import var

from api_client.errors import NotFound, RequestError
from api_client.models import Checkpoint, TrainingJob
from tui.actions import Scope
from tui.analysis.checkpoints.facts import CheckpointFacts
from tui.analysis.connection import Connection
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.analysis.run.finding import HealthFinding
from tui.app.downloads import DownloadsMixin
from tui.app.history import HistoryEntry, HistoryMixin
from tui.app.job_commands import JobChangesMixin
from tui.readers.session import Session
from tui.screens.base import AppScreen
from tui.screens.kinds import shows
from tui.screens.messages import (
    CapacityRequested,
    CompareCheckpointsRequested,
    CompareJobsRequested,
    DeployRequested,
    ExportRequested,
    FilesSaved,
    JobSubmitted,
    NewJobRequested,
    OpenCacheRequested,
    OpenCheckpointRequested,
    OpenJobRequested,
)
from tui.settings.loading import Loaded
from tui.settings.remembered import Memory
from tui.system.saved_files import delivered_as
from tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from tui.feeds.comparison import RunCache
    from tui.screens.job.layout import JobLayout


class ComparisonMixin(DownloadsMixin):
    """App mixin that opens the comparison and the capacity screen, and exports tables."""

    _settings: Loaded
    _runs_read: RunCache | None = None

    @on(CompareJobsRequested)
    def _compare_jobs(self, message: CompareJobsRequested) -> None:
        if self._session is not None and len(message.jobs) > 1:
            self._show_comparison(self._session, message.jobs)
        elif self._session is not None and message.jobs:
            self._compare_with_previous(self._session, message.jobs[0])

    @work(group="compare", exclusive=True)
    async def _compare_with_previous(self, session: Session, job: TrainingJob) -> None:
        from tui.feeds.comparison import job_before

        try:
            before = await job_before(session, job)
        except RequestError as error:
            self.notify(str(error), title="Can't compare", severity="error")
            return
        if before is None:
            self.notify("No earlier job in this project; mark jobs with space on Home.")
        else:
            self._show_comparison(session, (before, job))

    def _show_comparison(self, session: Session, jobs: Sequence[TrainingJob]) -> None:
        from tui.feeds.comparison import ComparisonFeed, RunCache
        from tui.screens.compare import CompareRunsScreen

        if self._runs_read is None:
            self._runs_read = RunCache()
        wanted = self._settings.configuration
        feed_with = partial(
            ComparisonFeed,
            session,
            self._runs_read,
            jobs,
            patterns=wanted.progress_patterns,
            own_prices=wanted.prices,
        )
        place = HistoryEntry(
            ("compare", *(job.id for job in jobs)), partial(self._show_comparison, session, tuple(jobs))
        )
        self.push_app_screen(CompareRunsScreen(jobs, feed_with), place)

    @on(CapacityRequested)
    def _show_capacity(self) -> None:
        if self._session is not None:
            from tui.feeds.capacity import CapacityFeed
            from tui.screens.capacity import CapacityScreen

            screen = CapacityScreen(self._session.place, partial(CapacityFeed, self._session))
            self.push_app_screen(screen, HistoryEntry(("capacity",), self._show_capacity))

    @on(ExportRequested)
    def _export(self, message: ExportRequested) -> None:
        if not any(table.rows for table in message.tables):
            self.notify("Nothing to export yet.")
            return

        from tui.screens.export import ExportScreen
        from tui.system.saved_files import proposed_path

        def saved(files: tuple[Path, ...] | None) -> None:
            if files:
                to_where = f"as {delivered_as(files)}" if self.is_web else f"to {', '.join(map(str, files))}"
                self.notify(f"Saved {message.what} {to_where}.")
                self.post_message(FilesSaved(files))

        self.push_screen(ExportScreen(message.what, message.tables, proposed_path(*message.names)), saved)


JOB_MEMORY = "job"
FINDINGS_MAX_AGE = timedelta(minutes=2)
"""Maximum age of Home's findings to pass to a job screen; Home polls less often while it is hidden."""
FIND_RETRY_S = 5.0
"""Delay between attempts to find the requested job while the server is unreachable."""


class ScreensMixin(JobChangesMixin, ComparisonMixin, HistoryMixin):
    """App mixin that opens screens on request."""

    _memory: Memory
    _tab: str | None
    _team: str
    _fleet: FleetSnapshot | None = None

    connection: var[Connection] = var(Connection())
    snoozed: var[frozenset[tuple[str, str]]]

    def push_app_screen(self, screen: AppScreen, place: HistoryEntry | None = None) -> None:
        """Push a screen after setting its shared state; add it to the history if ``place`` is given."""
        screen.connection, screen.downloads = self.connection, self.downloads
        screen.snoozed = self.snoozed
        screen.change_keys(self._keys)
        self.record_visit(screen, place)
        self.push_screen(screen)

    @on(OpenCacheRequested)
    def _open_cache(self, message: OpenCacheRequested) -> None:
        self._show_cache(message.project_id, message.name)

    def _show_cache(self, project_id: str, name: str) -> None:
        if self._session is not None:
            from tui.feeds.cache import CacheFeed
            from tui.screens.cache import CacheScreen

            screen = CacheScreen(name, partial(CacheFeed, self._session, project_id))
            self.push_app_screen(
                screen, HistoryEntry(("cache", project_id), partial(self._show_cache, project_id, name))
            )

    @on(OpenCheckpointRequested)
    def _open_checkpoint(self, message: OpenCheckpointRequested) -> None:
        self._show_checkpoint(message.job, message.checkpoint)

    def _show_checkpoint(self, job: TrainingJob, checkpoint: Checkpoint) -> None:
        if self._session is not None:
            from tui.feeds.checkpoint_files import CheckpointFilesFeed
            from tui.screens.files.screen import FilesScreen

            screen = FilesScreen(
                job, checkpoint, partial(CheckpointFilesFeed, self._session, job, checkpoint)
            )
            again = partial(self._show_checkpoint, job, checkpoint)
            self.push_app_screen(screen, HistoryEntry(("files", job.id, checkpoint.checkpoint_id), again))

    @on(CompareCheckpointsRequested)
    def _compare_checkpoints(self, message: CompareCheckpointsRequested) -> None:
        self._show_checkpoints(message.job, message.left, message.right)

    def _show_checkpoints(self, job: TrainingJob, left: CheckpointFacts, right: CheckpointFacts) -> None:
        if self._session is not None:
            from tui.feeds.checkpoint_files import list_files
            from tui.screens.files.compare import CompareScreen

            screen = CompareScreen(left, right, partial(list_files, self._session, job))
            again = partial(self._show_checkpoints, job, left, right)
            self.push_app_screen(screen, HistoryEntry(("checkpoints", job.id, left.name, right.name), again))

    @on(OpenJobRequested)
    def _open_job(self, message: OpenJobRequested) -> None:
        self._show_job(message.job)

    def _show_job(self, job: TrainingJob) -> None:
        if self._session is not None:
            from tui.feeds.run import RunFeed
            from tui.screens.job.layout import JobLayout
            from tui.screens.job.log_bar import LogDisplayOptions
            from tui.screens.job.screen import JobScreen

            wanted, display_options = self._settings.configuration, self._settings.configuration.logs
            feed_with = partial(
                RunFeed,
                self._session,
                rules=wanted.health,
                patterns=wanted.progress_patterns,
                prices=wanted.prices,
                findings=self._known_findings(job),
                status_interval_s=wanted.refresh.status_s,
                metrics_interval_s=wanted.refresh.metrics_s,
                checkpoints_interval_s=wanted.refresh.checkpoints_s,
            )
            log = LogDisplayOptions(
                time=display_options.time,
                wrap=display_options.wrap,
                min_level=display_options.min_level,
                collapse_progress=display_options.collapse_progress,
                fold_tracebacks=display_options.fold_tracebacks,
                max_lines=display_options.max_lines_in_memory,
            )
            settled = frozenset(name for name in asdict(log) if self._settings.is_given(f"logs.{name}"))
            layout = JobLayout(log=log).recalled(self._memory.table(JOB_MEMORY), settled)
            tab, self._tab = self._tab, None  # requested once; afterwards the remembered tab applies
            screen = JobScreen(job, feed_with, tab=tab, layout=layout, remember=self._remember_layout)
            self.push_app_screen(screen, HistoryEntry(("job", job.id), partial(self._show_job, job)))

    def _known_findings(self, job: TrainingJob) -> tuple[HealthFinding, ...]:
        """Return Home's findings for the job, if they are recent."""
        fleet = self._fleet
        if fleet is None or datetime.now(UTC) - fleet.at > FINDINGS_MAX_AGE:
            return ()
        return next((row.findings for row in fleet.jobs if row.id == job.id), ())

    def _remember_layout(self, layout: JobLayout) -> None:
        self._memory.put(JOB_MEMORY, layout.as_data())

    @work(group="find job", exclusive=True)
    async def _open_by_id(self, job_id: str) -> None:
        """Open a job by its id, retrying while the server is unreachable."""
        assert self._session is not None
        while True:
            try:
                self._show_job(await self._session.find_job(job_id))
            except NotFound:
                self.notify(f"No job {sanitize(job_id)} on {self._session.place}.", severity="error")
            except RequestError:
                await self._session.clock.sleep(FIND_RETRY_S)
                continue
            return

    @on(NewJobRequested)
    def _new_job(self) -> None:
        if self._may_change() and self._session is not None:
            from tui.feeds.submission import SubmissionFeed
            from tui.screens.submit import SubmitScreen

            feed_with = partial(SubmissionFeed, self._session, team=self._team)
            self.push_app_screen(SubmitScreen(feed_with, self._session.place))

    @on(JobSubmitted)
    def _follow_submitted(self, message: JobSubmitted) -> None:
        if shows(self.screen, Scope.SUBMIT):
            self.pop_screen()
            self._show_job(message.job)

    @on(DeployRequested)
    def _deploy(self, message: DeployRequested) -> None:
        if self._may_change() and self._session is not None:
            from tui.feeds.deployment import DeployFeed
            from tui.screens.deploy.screen import DeployScreen
            from tui.wizard.given import Prefilled

            given = Prefilled(
                job_id=message.job.id if message.job is not None else None,
                checkpoint_names=(message.checkpoint,) if message.checkpoint is not None else (),
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
            self.push_app_screen(DeployScreen(feed_with, self._session.place))
