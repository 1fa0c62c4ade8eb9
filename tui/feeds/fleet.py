"""Home's feed: lists of projects and jobs, and previews of the running jobs, polled in turn."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING

from api_client.errors import InvalidAnswer, NotFound, RequestError
from api_client.http.retry import LASTING, retrying
from api_client.vocabulary import RUNNABLE_STATUSES, JobStatus
from tui.analysis.connection import LISTS
from tui.analysis.cost import Bill
from tui.analysis.fleet.snapshot import UNREAD, FleetFold, FleetSnapshot, JobPreview, previewed_jobs
from tui.feeds.throttle import Pause, Throttle
from tui.readers.billing import BILL_INTERVAL_S, read_bill
from tui.readers.session import listed_prices
from tui.readers.stored_health import StoredHealth, store_health
from tui.settings.runs import DEFAULT, RunSettings
from tui.tables.fleet import health_cells
from tui.text.failures import left_out_note

if TYPE_CHECKING:
    from api_client.models import TrainingJob, TrainingProject
    from tui.feeds.previews import PreviewFeed
    from tui.readers.session import Session

PROJECTS_INTERVAL_S = 30.0
"""Interval for listing projects, which change seldom; a job of an unknown project has them listed at once."""
PUBLISH_INTERVAL_S, JOBS_PER_SECOND = 1.0, 1000
"""Minimum interval between snapshots; with over ``JOBS_PER_SECOND`` jobs, it grows with their number."""
STORE_INTERVAL_S = 30.0
"""Minimum interval for storing the health of the running jobs in the file that commands read."""
SLOW_INTERVAL_S = 10.0
"""Interval for listing jobs while another screen is in front, to monitor the connection and send alerts."""


class FleetFeed:
    """Publishes a ``FleetSnapshot`` after every change until cancelled.

    With ``previewed_ids``, only these jobs are previewed; all jobs are listed.
    """

    def __init__(
        self,
        session: Session,
        publish: Callable[[FleetSnapshot], object],
        settings: RunSettings = DEFAULT,
        *,
        list_interval_s: float = 5.0,
        previewed_ids: Collection[str] | None = None,
    ) -> None:
        self._settings = settings
        self._preview_feed: PreviewFeed | None = None
        self._previewed_ids = previewed_ids
        self._list_interval_s = list_interval_s
        self._session = session
        self._publish_snapshot = publish
        self._throttle = Throttle(self._publish, session.clock, interval_s=PUBLISH_INTERVAL_S)
        self._projects: list[TrainingProject] = []
        self._unreadable_projects: list[str] = []
        self._projects_read_s = -math.inf
        self._unreadable_jobs: list[str] = []
        self._jobs: dict[str, TrainingJob] = {}
        self._live_jobs: dict[str, TrainingJob] = {}
        """Unfinished jobs, and jobs that have ended since the last full list, by ID."""
        self._unfinished_jobs: list[TrainingJob] = []
        self._previewed_running: list[TrainingJob] = []
        self._previewed_ended: list[TrainingJob] = []
        self._fold = FleetFold()
        self._folded_previews: Mapping[str, JobPreview] = {}
        """The previews by job ID that the fold's current rows of ended jobs show."""
        self._is_manual_refresh = False
        self._is_listed = asyncio.Event()
        self._pause = Pause(session.clock)
        self._is_shown = asyncio.Event()
        self._is_shown.set()
        self._poll_count = 0
        """Polls of the job list since the last manual refresh."""
        self._prices = dict(settings.prices)
        self._bill: Bill | None = None
        self._is_cost_read = self._is_read = False
        self._store_due_s = -math.inf

    @property
    def is_shown(self) -> bool:
        """True if Home is the screen in front."""
        return self._is_shown.is_set()

    @is_shown.setter
    def is_shown(self, is_shown: bool) -> None:
        if is_shown and not self.is_shown:
            self._is_shown.set()
            self._pause.end()
        elif not is_shown:
            self._is_shown.clear()
            self._session.report_success(LISTS)  # Other screens do not show data from the lists.

    async def run(self) -> None:
        if self._session.connection.recorded is not None:
            await self._is_shown.wait()  # a recording causes no alerts, so it is read only for Home
        await self._session.import_client()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._throttle.run())
            tasks.create_task(self._poll_job_list())
            tasks.create_task(self._read_previews())
            tasks.create_task(self._poll_cost())

    def refresh(self) -> None:
        self._poll_count = 0  # the next poll lists all jobs
        self._is_manual_refresh = True
        self._pause.end()

    async def _read_previews(self) -> None:
        """Read the previews; import their module in a thread, because compiling log patterns takes long."""
        module = await asyncio.to_thread(import_module, "tui.feeds.previews")
        feed: PreviewFeed = module.PreviewFeed(
            self._session,
            self._settings,
            is_shown=self._is_shown,
            on_change=self._publish_read,
        )
        await self._is_listed.wait()
        feed.watch(self._previewed_running, self._previewed_ended, self._jobs.keys())
        self._preview_feed = feed
        self._publish_read()
        await feed.run()

    @property
    def _previews(self) -> Mapping[str, JobPreview]:
        previews = {job.id: UNREAD for job in (*self._previewed_running, *self._previewed_ended)}
        read_previews = {} if self._preview_feed is None else self._preview_feed.previews
        for job_id, preview in read_previews.items():
            # Newer jobs may have displaced this job before its log was read completely.
            is_displaced = preview.reading and job_id not in previews
            previews[job_id] = replace(preview, reading=False) if is_displaced else preview
        return previews

    async def _poll_cost(self) -> None:
        """Read the prices (without them, GPU-hours are shown), and poll the bill of the last 30 days."""
        await self._is_listed.wait()
        with suppress(RequestError):
            self._prices = await listed_prices(self._session.client, self._settings.prices)
        while True:
            self._throttle.request()
            await self._is_shown.wait()
            now = self._session.clock.now()
            with suppress(RequestError):
                # with the hours since midnight, 30 days are the longest range of one request
                self._bill = await read_bill(self._session.client, now - timedelta(days=30), now)
            self._is_cost_read = True
            self._publish_read()
            await self._session.clock.sleep(BILL_INTERVAL_S)

    async def _poll_job_list(self) -> None:
        while True:
            await retrying(self._list, LASTING, sleep=self._pause, on_wait=self._report_failure)
            self._session.report_success(LISTS)
            is_slow = not self.is_shown and self._list_interval_s < SLOW_INTERVAL_S
            await self._pause(SLOW_INTERVAL_S if is_slow else self._list_interval_s)

    def _report_failure(self, error: RequestError, _delay_s: float) -> None:
        if self.is_shown:  # the previous lists stay; every screen shows the connection's state
            self._session.report_failure(LISTS, error)

    async def _list(self) -> None:
        client = self._session.client
        # List all jobs only in every nth poll (n grows by one per hundred jobs), else the unfinished jobs.
        lists_all = self._poll_count % min(len(self._jobs) // 100 + 1, 60) == 0
        is_manual, self._is_manual_refresh = self._is_manual_refresh, False
        self._poll_count += 1
        if lists_all:
            if is_manual or self._session.clock.monotonic() - self._projects_read_s >= PROJECTS_INTERVAL_S:
                await self._read_projects()
            jobs = await asyncio.to_thread(reuse_unchanged, await self._all_jobs(), self._jobs)
            previews = dict(self._previews)
            await asyncio.to_thread(self._fold.warm, jobs, previews, self._session.clock.now())
            self._folded_previews = previews
            self._jobs = {job.id: job for job in jobs}
            self._live_jobs = {job.id: job for job in jobs if not job.is_finished}
            interval_s = min(len(jobs) / JOBS_PER_SECOND, 10.0)
            self._throttle.interval_s = max(PUBLISH_INTERVAL_S, interval_s)
        else:
            unreadable: list[str] = []
            listed_jobs = await client.jobs.search(
                statuses=sorted(RUNNABLE_STATUSES), retry=self._session.polling_retry, unreadable=unreadable
            )
            self._unreadable_jobs = max(self._unreadable_jobs, unreadable, key=len)
            updated_jobs = {job.id: job for job in reuse_unchanged(listed_jobs, self._jobs)}
            unlisted = [job for job in self._unfinished_jobs if job.id not in updated_jobs]
            # An unlisted job may have ended or been deleted, or its response may be invalid.
            ignored_errors = (NotFound, InvalidAnswer) if unreadable else (NotFound,)
            for job in unlisted:
                with suppress(*ignored_errors):
                    updated_jobs[job.id] = await client.jobs.get(job.project_id, job.id)
            self._jobs |= updated_jobs
            self._live_jobs |= updated_jobs
            ended_jobs = filter(self._is_ended_run, updated_jobs.values())
            self._previewed_ended = previewed_jobs([*self._previewed_ended, *ended_jobs])
        project_ids = {project.id for project in self._projects}
        if any(job.project_id not in project_ids for job in self._live_jobs.values()):
            await self._read_projects()
        self._unfinished_jobs = [
            job for job in self._live_jobs.values() if job.current_status in RUNNABLE_STATUSES
        ]
        self._previewed_running = previewed_jobs(filter(self._is_running, self._unfinished_jobs))
        if lists_all:
            self._previewed_ended = previewed_jobs(filter(self._is_ended_run, self._jobs.values()))
        if self._preview_feed is not None:
            self._preview_feed.watch(self._previewed_running, self._previewed_ended, self._jobs.keys())
        self._is_listed.set()
        if is_manual:
            # After a manual refresh, publish at once, whatever the interval for large accounts.
            self._publish()
        else:
            self._throttle.request()

    def _may_preview(self, job: TrainingJob) -> bool:
        return self._previewed_ids is None or job.id in self._previewed_ids

    def _is_running(self, job: TrainingJob) -> bool:
        return job.current_status == JobStatus.RUNNING and self._may_preview(job)

    def _is_ended_run(self, job: TrainingJob) -> bool:
        return job.is_finished and job.current_status != JobStatus.DEPLOY_FAILED and self._may_preview(job)

    async def _read_projects(self) -> None:
        unreadable: list[str] = []
        self._projects = await self._session.client.projects.list(
            retry=self._session.polling_retry, unreadable=unreadable
        )
        self._unreadable_projects, self._projects_read_s = unreadable, self._session.clock.monotonic()

    async def _all_jobs(self) -> list[TrainingJob]:
        """Return every job by search, or project by project if the server has no search route."""
        jobs = self._session.client.jobs
        unreadable: list[str] = []
        try:
            all_jobs = await jobs.search(retry=self._session.polling_retry, unreadable=unreadable)
        except NotFound:
            lists = [await jobs.list(project.id, unreadable=unreadable) for project in self._projects]
            all_jobs = [job for project_jobs in lists for job in project_jobs]
        self._unreadable_jobs = unreadable
        return all_jobs

    @property
    def _is_all_read(self) -> bool:
        return self._is_cost_read and self._preview_feed is not None and self._preview_feed.is_read

    def _publish_read(self) -> None:
        """Publish soon; at once when everything has been read, because commands wait for everything."""
        if self._is_all_read and not self._is_read:
            self._publish()
        else:
            self._throttle.request()

    def _publish(self) -> None:
        previews = self._previews
        changed_ended_jobs = {
            job_id: job
            for job_id, preview in previews.items()
            if preview is not self._folded_previews.get(job_id)
            and (job := self._jobs.get(job_id)) is not None
            and job.is_finished
        }
        snapshot = self._fold.fold(
            self._projects,
            (changed_ended_jobs | self._live_jobs).values(),
            previews,
            self._session.clock.now(),
            self._prices,
            self._bill,
        )
        left_out_notes = (
            left_out_note("project", self._unreadable_projects),
            left_out_note("job", self._unreadable_jobs),
        )
        self._is_read = self._is_read or self._is_all_read
        snapshot = replace(snapshot, left_out="; ".join(filter(None, left_out_notes)), is_read=self._is_read)
        self._publish_snapshot(snapshot)
        self._store_health(snapshot)

    def _store_health(self, snapshot: FleetSnapshot) -> None:
        """Store the health of the running jobs for commands, in a thread because the disk may be slow."""
        now_s = self._session.clock.monotonic()
        if snapshot.is_read and now_s >= self._store_due_s and self._session.connection.recorded is None:
            self._store_due_s = now_s + STORE_INTERVAL_S
            jobs = {
                row.id: StoredHealth(
                    row.preview.at_s, row.sign if row.alarmed else "", health_cells(snapshot, row)
                )
                for row in snapshot.jobs
                if row.running and row.preview.log_read
            }
            asyncio.get_running_loop().run_in_executor(
                None, store_health, self._session.remote.api_url, jobs, snapshot.at.timestamp()
            )


def reuse_unchanged(jobs: Iterable[TrainingJob], known_jobs: Mapping[str, TrainingJob]) -> list[TrainingJob]:
    """Return ``jobs`` with the known object of each unchanged job; later code compares them by ``is``."""
    return [known_job if (known_job := known_jobs.get(job.id)) == job else job for job in jobs]
