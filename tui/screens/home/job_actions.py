"""Home's actions on jobs; they apply to the marked jobs, or to the one under the cursor."""

from __future__ import annotations

from collections.abc import Iterable

from textual.reactive import var

from api_client.models import TrainingJob
from tui.analysis.comparison import MAX_COMPARED_RUNS
from tui.analysis.fleet.batches import Verb
from tui.analysis.fleet.snapshot import FleetSnapshot, JobRow, ProjectRow, jobs_table
from tui.screens.base import AppScreen
from tui.screens.home.columns import ALL_PROJECTS
from tui.screens.messages import (
    BatchRequested,
    BookmarkRequested,
    BrowserRequested,
    CapacityRequested,
    CompareJobsRequested,
    CopyRequested,
    DeployRequested,
    ExportRequested,
    NewJobRequested,
    OpenCacheRequested,
    RecreateJobRequested,
    SnoozeRequested,
    StopJobRequested,
)
from tui.widgets.row_table import RowTable


class JobActions(AppScreen):
    """Home's actions on jobs and projects; they only post requests, which the app carries out."""

    snapshot: var[FleetSnapshot | None] = var(None)
    marked: var[tuple[str, ...]] = var((), init=False)
    """Ids of the marked jobs, in the order in which they were marked."""
    _place: str

    @property
    def _jobs(self) -> RowTable[JobRow]:
        return self.query_one("#jobs", RowTable)

    @property
    def _projects(self) -> RowTable[ProjectRow]:
        return self.query_one("#projects", RowTable)

    @property
    def _chosen(self) -> TrainingJob | None:
        row = self._jobs.cursor_row
        return row.job if row is not None else None

    def action_new_job(self) -> None:
        self.post_message(NewJobRequested())

    def action_snooze(self) -> None:
        row = self._jobs.cursor_row
        if row is not None and row.findings:
            self.post_message(SnoozeRequested(row.job, row.findings))
        elif row is not None:
            self.notify(f"No problems found with {row.name}.")

    def action_open_cache(self) -> None:
        """Open the cache of the chosen project, or of the job's project."""
        project = self._projects.cursor_row
        if project is not None and project.id != ALL_PROJECTS:
            self.post_message(OpenCacheRequested(project.id, project.name))
        elif (job := self._chosen) is not None:
            name = job.training_project.name if job.training_project else job.project_id
            self.post_message(OpenCacheRequested(job.project_id, name))
        else:
            self.notify(f"Choose a project first: {self.key_for('home.toggle_projects')} shows them.")

    def action_mark(self) -> None:
        row = self._jobs.cursor_row
        if row is None:
            return
        if row.id in self.marked:
            self.marked = tuple(one for one in self.marked if one != row.id)
        else:
            self.marked = (*self.marked, row.id)

    def action_bookmark(self) -> None:
        if (job := self._chosen) is not None:
            self.post_message(BookmarkRequested(job))

    def action_compare(self) -> None:
        """Compare the marked jobs, or the only marked one with the job under the cursor."""
        jobs, chosen = self._marked_jobs(), self._chosen
        if len(jobs) == 1 and chosen is not None and chosen.id != jobs[0].id:
            jobs.append(chosen)
        if len(jobs) < 2:
            mark, compare = self.key_for("home.mark"), self.key_for("home.compare")
            self.notify(f"Mark two or more jobs with {mark}, then press {compare} to compare.")
        elif len(jobs) > MAX_COMPARED_RUNS:
            mark = self.key_for("home.mark")
            self.notify(f"Compare at most {MAX_COMPARED_RUNS} jobs; press {mark} to unmark one.")
        else:
            self.post_message(CompareJobsRequested(jobs))

    def action_open_capacity(self) -> None:
        self.post_message(CapacityRequested())

    def action_export(self) -> None:
        table = jobs_table(self._jobs.rows)
        self.post_message(ExportRequested(f"{len(table.rows)} jobs", [table], (self._place, "jobs")))

    def action_deploy(self) -> None:
        self.post_message(DeployRequested(self._chosen))

    def _marked_jobs(self) -> list[TrainingJob]:
        """Return the marked jobs that still exist, in the order in which they were marked."""
        known = {row.id: row.job for row in self.snapshot.jobs} if self.snapshot is not None else {}
        return [known[job_id] for job_id in self.marked if job_id in known]

    def unmark(self, job_ids: Iterable[str]) -> None:
        gone = set(job_ids)
        self.marked = tuple(one for one in self.marked if one not in gone)

    def action_delete_job(self) -> None:
        """Ask to delete the marked jobs, or the one under the cursor."""
        jobs = self._marked_jobs() or ([self._chosen] if self._chosen is not None else [])
        if jobs:
            self.post_message(BatchRequested(Verb.DELETE, jobs))

    def action_stop_job(self) -> None:
        """Ask to stop the marked jobs, or the one under the cursor."""
        if marked := self._marked_jobs():
            self.post_message(BatchRequested(Verb.STOP, marked))
        elif (job := self._chosen) is not None:
            self.post_message(StopJobRequested(job))

    def action_recreate_job(self) -> None:
        """Ask to recreate the marked jobs, or the one under the cursor."""
        if marked := self._marked_jobs():
            self.post_message(BatchRequested(Verb.RECREATE, marked))
        elif (job := self._chosen) is not None:
            self.post_message(RecreateJobRequested(job))

    def action_copy_id(self) -> None:
        if (job := self._chosen) is not None:
            self.post_message(CopyRequested(job.id, "job id"))

    def action_open_browser(self) -> None:
        if (job := self._chosen) is not None:
            self.post_message(BrowserRequested(job))
