"""What people do to the job itself, whatever its tab: stop it, run it again, deploy, compare, copy."""

from __future__ import annotations

from textual.reactive import var

from api_client.models import TrainingJob
from tui.insight.run.snapshot import RunSnapshot
from tui.insight.transfers import Wanted
from tui.messages import (
    BookmarkRequested,
    BrowserRequested,
    CompareJobsRequested,
    CopyRequested,
    DeployRequested,
    DownloadRequested,
    OpenCacheRequested,
    RecreateJobRequested,
    SnoozeRequested,
    StopJobRequested,
)
from tui.screens.job.checkpoint_pane import CheckpointPane
from tui.screens.job.tab_actions import TabActions


class RunActions(TabActions):
    """The job screen's actions on its job; what they ask for is the app's to do."""

    job: TrainingJob
    snapshot: var[RunSnapshot | None] = var(None)

    def action_deploy(self) -> None:
        """Deploy this job's checkpoints; on their tab, the one under the cursor."""
        chosen = self.query_one(CheckpointPane).chosen
        name = chosen.name if chosen is not None and self.tab == "checkpoints" else None
        self.post_message(DeployRequested(self.job, name, self.snapshot))

    def action_open_cache(self) -> None:
        """The cache of the job's project."""
        project = self.job.training_project
        self.post_message(
            OpenCacheRequested(self.job.project_id, project.name if project else self.job.project_id)
        )

    def action_download_source(self) -> None:
        """Download the job's source code."""
        self.post_message(DownloadRequested(Wanted(self.job, archive=True)))

    def action_compare(self) -> None:
        """Compare with the job before this one."""
        self.post_message(CompareJobsRequested([self.job]))

    def action_stop_job(self) -> None:
        """Ask to stop the job."""
        self.post_message(StopJobRequested(self.job))

    def action_recreate_job(self) -> None:
        """Ask for a new job like this one."""
        self.post_message(RecreateJobRequested(self.job))

    def action_snooze(self) -> None:
        """Be silent about what is wrong with the job, or no longer."""
        found = self.snapshot.findings if self.snapshot is not None else ()
        if found:
            self.post_message(SnoozeRequested(self.job, found))
        else:
            self.notify("Nothing is found wrong with this job.")

    def action_bookmark(self) -> None:
        """Set a bookmark on this job, or take it away."""
        self.post_message(BookmarkRequested(self.job))

    def action_copy_id(self) -> None:
        """Copy the job's id."""
        self.post_message(CopyRequested(self.job.id, "job id"))

    def action_open_browser(self) -> None:
        """Open the job's page."""
        self.post_message(BrowserRequested(self.job))
