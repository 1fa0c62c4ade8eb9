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
from tui.readers.kept_health import KeptHealth, keep_health
from tui.readers.session import listed_prices
from tui.settings.runs import DEFAULT, RunSettings
from tui.tables.fleet import health_cells
from tui.text.failures import left_out

if TYPE_CHECKING:
    from api_client.models import TrainingJob, TrainingProject
    from tui.feeds.previews import PreviewFeed
    from tui.readers.session import Session

PROJECTS_INTERVAL_S = 30.0
"""Projects change seldom, and a job of an unknown one has them listed at once."""
PUBLISH_INTERVAL_S, JOBS_PER_SECOND = 1.0, 1000
"""Snapshots of many jobs are published less often, in proportion."""
KEEP_INTERVAL_S = 30.0
"""Minimum interval for writing the health of the running jobs: commands use it for 15 minutes."""
SLOW_INTERVAL_S = 10.0
"""Polling interval while another screen is in front, so that the connection is still monitored."""


class FleetFeed:
    """Publishes a ``FleetSnapshot`` after every change until cancelled.

    With ``only``, nothing is read of jobs with other ids but the list.
    """

    def __init__(
        self,
        session: Session,
        publish: Callable[[FleetSnapshot], object],
        settings: RunSettings = DEFAULT,
        *,
        list_interval_s: float = 5.0,
        only: Collection[str] | None = None,
    ) -> None:
        self._settings = settings
        self._preview_feed: PreviewFeed | None = None
        self._only = only
        self._list_interval_s = list_interval_s
        self._session = session
        self._publish_snapshot = publish
        self._throttle = Throttle(self._publish, session.clock, interval_s=PUBLISH_INTERVAL_S)
        self._projects: list[TrainingProject] = []
        self._unreadable_projects: list[str] = []
        self._projects_read_s = -math.inf
        self._unreadable_jobs: list[str] = []
        self._jobs: dict[str, TrainingJob] = {}
        # Unfinished jobs, and those that have ended since the last full list.
        self._live: dict[str, TrainingJob] = {}
        self._unfinished: list[TrainingJob] = []
        self._running: list[TrainingJob] = []
        self._ended: list[TrainingJob] = []
        """The jobs that are previewed."""
        self._fold = FleetFold()
        self._folded: Mapping[str, JobPreview] = {}
        """The previews that the fold has in its rows of ended jobs."""
        self._is_manual_refresh = False
        self._listed = asyncio.Event()
        self._pause = Pause(session.clock)
        self._watched = asyncio.Event()
        self._watched.set()
        self._rounds = 0
        self._prices = dict(settings.prices)
        self._bill: Bill | None = None
        self._is_cost_read = self._is_read = False
        self._keep_due_s = -math.inf

    @property
    def watched(self) -> bool:
        """True if this feed's data is on screen."""
        return self._watched.is_set()

    @watched.setter
    def watched(self, watched: bool) -> None:
        if watched and not self.watched:
            self._watched.set()
            self._pause.end()
        elif not watched:
            self._watched.clear()
            self._session.report_success(LISTS)  # Other screens do not show data from the lists.

    async def run(self) -> None:
        if self._session.connection.recorded is not None:
            await self._watched.wait()  # nothing alerts of what is over
        await self._session.import_client()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._throttle.run())
            tasks.create_task(self._poll_job_list())
            tasks.create_task(self._read_previews())
            tasks.create_task(self._poll_cost())

    def refresh(self) -> None:
        self._rounds = 0
        self._is_manual_refresh = True
        self._pause.end()

    async def _read_previews(self) -> None:
        """Import the log patterns in a thread during the first requests: compiling them takes a while."""
        module = await asyncio.to_thread(import_module, "tui.feeds.previews")
        feed: PreviewFeed = module.PreviewFeed(
            self._session,
            self._settings,
            is_shown=self._watched,
            on_change=self._publish_read,
        )
        await self._listed.wait()
        feed.watch(self._running, self._ended, self._jobs.keys())
        self._preview_feed = feed
        self._publish_read()
        await feed.run()

    @property
    def _previews(self) -> Mapping[str, JobPreview]:
        previews = {job.id: UNREAD for job in (*self._running, *self._ended)}
        for job_id, read in {} if self._preview_feed is None else self._preview_feed.previews.items():
            # Newer jobs may have taken its turn before all of it was read.
            is_dropped = read.reading and job_id not in previews
            previews[job_id] = replace(read, reading=False) if is_dropped else read
        return previews

    async def _poll_cost(self) -> None:
        """Read the prices, without which GPU-hours are shown, and the bill of the last month."""
        await self._listed.wait()
        with suppress(RequestError):
            self._prices = await listed_prices(self._session.client, self._settings.prices)
        while True:
            self._throttle.request()
            await self._watched.wait()
            now = self._session.clock.now()
            with suppress(RequestError):
                # one request can't read more, because ranges begin at midnight
                self._bill = await read_bill(self._session.client, now - timedelta(days=30), now)
            self._is_cost_read = True
            self._publish_read()
            await self._session.clock.sleep(BILL_INTERVAL_S)

    async def _poll_job_list(self) -> None:
        while True:
            await retrying(self._list, LASTING, sleep=self._pause, on_wait=self._report_failure)
            self._session.report_success(LISTS)
            is_slow = not self.watched and self._list_interval_s < SLOW_INTERVAL_S
            await self._pause(SLOW_INTERVAL_S if is_slow else self._list_interval_s)

    def _report_failure(self, error: RequestError, _delay_s: float) -> None:
        if self.watched:  # the last lists stay; every screen shows the connection's state
            self._session.report_failure(LISTS, error)

    async def _list(self) -> None:
        client = self._session.client
        # list all jobs only in one poll per hundred jobs, in the others the unfinished ones
        everything = self._rounds % min(len(self._jobs) // 100 + 1, 60) == 0
        is_manual, self._is_manual_refresh = self._is_manual_refresh, False
        self._rounds += 1
        if everything:
            if is_manual or self._session.clock.monotonic() - self._projects_read_s >= PROJECTS_INTERVAL_S:
                await self._read_projects()
            jobs = await asyncio.to_thread(reuse_unchanged, await self._all_jobs(), self._jobs)
            previews = dict(self._previews)
            await asyncio.to_thread(self._fold.warm, jobs, previews, self._session.clock.now())
            self._folded = previews
            self._jobs = {job.id: job for job in jobs}
            self._live = {job.id: job for job in jobs if not job.is_finished}
            interval_s = min(len(jobs) / JOBS_PER_SECOND, 10.0)
            self._throttle.interval_s = max(PUBLISH_INTERVAL_S, interval_s)
        else:
            unreadable: list[str] = []
            listed = await client.jobs.search(
                statuses=sorted(RUNNABLE_STATUSES), retry=self._session.polling, unreadable=unreadable
            )
            self._unreadable_jobs = max(self._unreadable_jobs, unreadable, key=len)
            fresh = {job.id: job for job in reuse_unchanged(listed, self._jobs)}
            ended = [job for job in self._unfinished if job.id not in fresh]
            # A job that cannot be read is not listed either.
            passing = (NotFound, InvalidAnswer) if unreadable else (NotFound,)
            for job in ended:
                with suppress(*passing):
                    fresh[job.id] = await client.jobs.get(job.project_id, job.id)
            self._jobs |= fresh
            self._live |= fresh
            self._ended = previewed_jobs([*self._ended, *filter(self._has_run, fresh.values())])
        project_ids = {project.id for project in self._projects}
        if any(job.project_id not in project_ids for job in self._live.values()):
            await self._read_projects()
        self._unfinished = [job for job in self._live.values() if job.current_status in RUNNABLE_STATUSES]
        self._running = previewed_jobs(filter(self._is_running, self._unfinished))
        if everything:
            self._ended = previewed_jobs(filter(self._has_run, self._jobs.values()))
        if self._preview_feed is not None:
            self._preview_feed.watch(self._running, self._ended, self._jobs.keys())
        self._listed.set()
        if is_manual:
            # After a manual refresh, publish at once, whatever the interval for large accounts.
            self._publish()
        else:
            self._throttle.request()

    def _is_wanted(self, job: TrainingJob) -> bool:
        return self._only is None or job.id in self._only

    def _is_running(self, job: TrainingJob) -> bool:
        return job.current_status == JobStatus.RUNNING and self._is_wanted(job)

    def _has_run(self, job: TrainingJob) -> bool:
        return job.is_finished and job.current_status != JobStatus.DEPLOY_FAILED and self._is_wanted(job)

    async def _read_projects(self) -> None:
        unreadable: list[str] = []
        self._projects = await self._session.client.projects.list(
            retry=self._session.polling, unreadable=unreadable
        )
        self._unreadable_projects, self._projects_read_s = unreadable, self._session.clock.monotonic()

    async def _all_jobs(self) -> list[TrainingJob]:
        """Return every job by search, or project by project if the server has no search route."""
        jobs = self._session.client.jobs
        unreadable: list[str] = []
        try:
            all_jobs = await jobs.search(retry=self._session.polling, unreadable=unreadable)
        except NotFound:
            listed = [await jobs.list(project.id, unreadable=unreadable) for project in self._projects]
            all_jobs = [job for of_project in listed for job in of_project]
        self._unreadable_jobs = unreadable
        return all_jobs

    @property
    def _is_all_read(self) -> bool:
        return self._is_cost_read and self._preview_feed is not None and self._preview_feed.is_read

    def _publish_read(self) -> None:
        """Publish what was read; at once if it was the last that is awaited, as commands wait for it."""
        if self._is_all_read and not self._is_read:
            self._publish()
        else:
            self._throttle.request()

    def _publish(self) -> None:
        previews = self._previews
        read_since = {
            job_id: job
            for job_id, preview in previews.items()
            if preview is not self._folded.get(job_id)
            and (job := self._jobs.get(job_id)) is not None
            and job.is_finished
        }
        snapshot = self._fold.fold(
            self._projects,
            (read_since | self._live).values(),
            previews,
            self._session.clock.now(),
            self._prices,
            self._bill,
        )
        missing = (left_out("project", self._unreadable_projects), left_out("job", self._unreadable_jobs))
        self._is_read = self._is_read or self._is_all_read
        snapshot = replace(snapshot, left_out="; ".join(filter(None, missing)), is_read=self._is_read)
        self._publish_snapshot(snapshot)
        self._keep(snapshot)

    def _keep(self, snapshot: FleetSnapshot) -> None:
        """Keep the health of the running jobs for quick commands, in a thread as a disk may be slow."""
        now_s = self._session.clock.monotonic()
        if snapshot.is_read and now_s >= self._keep_due_s and self._session.connection.recorded is None:
            self._keep_due_s = now_s + KEEP_INTERVAL_S
            jobs = {
                row.id: KeptHealth(
                    row.preview.at_s, row.sign if row.alarmed else "", health_cells(snapshot, row)
                )
                for row in snapshot.jobs
                if row.running and row.preview.log_read
            }
            asyncio.get_running_loop().run_in_executor(
                None, keep_health, self._session.remote.api_url, jobs, snapshot.at.timestamp()
            )


def reuse_unchanged(jobs: Iterable[TrainingJob], known: Mapping[str, TrainingJob]) -> list[TrainingJob]:
    """Replace jobs that did not change by the known objects, which are compared with ``is`` from here on."""
    return [before if (before := known.get(job.id)) == job else job for job in jobs]
