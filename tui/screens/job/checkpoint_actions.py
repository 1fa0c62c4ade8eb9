"""What people do with the checkpoints of a run; the pane holds them."""

from __future__ import annotations

from textual.widget import Widget

from api_client.models import TrainingJob
from tui.insight.checkpoints.facts import CheckpointFacts
from tui.insight.checkpoints.resume_snippet import resume_snippet
from tui.insight.transfers import Wanted
from tui.messages import (
    CompareCheckpointsRequested,
    CopyRequested,
    DownloadRequested,
    OpenCheckpointRequested,
)
from tui.screens.base import key_on
from tui.screens.job.checkpoint_pane import CheckpointPane


class CheckpointActions(Widget):
    """The job screen's actions on its checkpoints."""

    job: TrainingJob

    @property
    def checkpoint_pane(self) -> CheckpointPane:
        """The pane they work on."""
        return self.query_one(CheckpointPane)

    @property
    def _chosen_checkpoint(self) -> CheckpointFacts | None:
        chosen = self.checkpoint_pane.chosen
        if chosen is None:
            self.notify("There is no checkpoint here yet.")
        return chosen

    def action_open_checkpoint(self) -> None:
        """Look into the checkpoint."""
        if (chosen := self._chosen_checkpoint) is not None:
            self.post_message(OpenCheckpointRequested(self.job, chosen.checkpoint))

    def action_mark_checkpoint(self) -> None:
        """Mark it."""
        self.checkpoint_pane.toggle_mark()

    def action_download_checkpoint(self) -> None:
        """Download the marked ones, or the one under the cursor."""
        chosen = self._chosen_checkpoint
        if chosen is None:
            return
        wanted = self.checkpoint_pane.marked or (chosen,)
        sizes = [one.checkpoint.size_bytes for one in wanted]
        size = sum(size for size in sizes if size is not None) if any(sizes) else None
        names = tuple(dict.fromkeys(one.name for one in wanted))
        self.post_message(DownloadRequested(Wanted(self.job, names, size_bytes=size)))

    def action_compare_checkpoints(self) -> None:
        """Compare the two that are marked; with one, it and the one under the cursor."""
        marked, chosen = self.checkpoint_pane.marked, self.checkpoint_pane.chosen
        if len(marked) == 1 and chosen is not None and chosen != marked[0]:
            marked = (*marked, chosen)
        if len(marked) != 2:
            mark = key_on(self, "checkpoints.mark_checkpoint")
            compare = key_on(self, "checkpoints.compare_checkpoints")
            self.notify(f"Mark two checkpoints with {mark}, then {compare} compares them.")
            return
        left, right = sorted(marked, key=lambda one: (one.step is None, one.step or 0))
        self.post_message(CompareCheckpointsRequested(self.job, left, right))

    def action_copy_load_config(self) -> None:
        """Copy what resumes training from it."""
        if (chosen := self._chosen_checkpoint) is not None:
            snippet = resume_snippet(self.job.id, chosen.name)
            self.post_message(CopyRequested(snippet, "LoadCheckpointConfig for config.py:", lines=True))

    def action_sort_checkpoints(self) -> None:
        """The next order."""
        self.checkpoint_pane.next_order()

    def action_reverse_checkpoints(self) -> None:
        """The other way round."""
        self.checkpoint_pane.reverse()
