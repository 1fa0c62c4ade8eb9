"""The job screen's actions on its tabs and on its job."""

from __future__ import annotations

from textual.reactive import var
from textual.widget import Widget

from api_client.models import TrainingJob
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.transfers import DownloadRequest
from tui.screens.job.checkpoint_pane import CheckpointPane
from tui.screens.job.layout import TAB_IDS
from tui.screens.messages import (
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


class TabActions(Widget):
    """An action for each tab, and actions for the next and the previous tab."""

    tab: var[str] = var("live", init=False)

    def show_tab(self, tab: str) -> None:
        """Show a tab; if it is shown already, focus it."""
        if tab == self.tab:
            self.focus_tab(tab)
        else:
            self.tab = tab

    def focus_tab(self, tab: str) -> None:
        """Focus the main widget of a tab."""
        raise NotImplementedError

    def action_show_live(self) -> None:
        self.show_tab("live")

    def action_show_logs(self) -> None:
        self.show_tab("logs")

    def action_show_metrics(self) -> None:
        self.show_tab("metrics")

    def action_show_checkpoints(self) -> None:
        self.show_tab("checkpoints")

    def action_show_details(self) -> None:
        self.show_tab("details")

    def action_next_tab(self) -> None:
        self.show_tab(TAB_IDS[(TAB_IDS.index(self.tab) + 1) % len(TAB_IDS)])

    def action_previous_tab(self) -> None:
        self.show_tab(TAB_IDS[(TAB_IDS.index(self.tab) - 1) % len(TAB_IDS)])


class RunActions(TabActions):
    """The job screen's actions on its job; they only post requests, which the app carries out."""

    job: TrainingJob
    snapshot: var[RunSnapshot | None] = var(None)

    def action_deploy(self) -> None:
        """Deploy this job's checkpoints; on the checkpoints tab, preselect the one under the cursor."""
        chosen = self.query_one(CheckpointPane).chosen
        name = chosen.name if chosen is not None and self.tab == "checkpoints" else None
        self.post_message(DeployRequested(self.job, name, self.snapshot))

    def action_open_cache(self) -> None:
        project = self.job.training_project
        self.post_message(
            OpenCacheRequested(self.job.project_id, project.name if project else self.job.project_id)
        )

    def action_download_source(self) -> None:
        self.post_message(DownloadRequested(DownloadRequest(self.job, archive=True)))

    def action_compare(self) -> None:
        """Compare with the previous job of the project."""
        self.post_message(CompareJobsRequested([self.job]))

    def action_stop_job(self) -> None:
        self.post_message(StopJobRequested(self.job))

    def action_recreate_job(self) -> None:
        self.post_message(RecreateJobRequested(self.job))

    def action_snooze(self) -> None:
        found = self.snapshot.findings if self.snapshot is not None else ()
        if found:
            self.post_message(SnoozeRequested(self.job, found))
        else:
            self.notify("No problems found with this job.")

    def action_bookmark(self) -> None:
        self.post_message(BookmarkRequested(self.job))

    def action_copy_id(self) -> None:
        self.post_message(CopyRequested(self.job.id, "job id"))

    def action_open_browser(self) -> None:
        self.post_message(BrowserRequested(self.job))
