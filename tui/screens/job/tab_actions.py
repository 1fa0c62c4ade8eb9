"""Going from tab to tab of the job screen."""

from __future__ import annotations

from textual.reactive import var
from textual.widget import Widget

from tui.screens.job.layout import TAB_IDS


class TabActions(Widget):
    """One action for each tab, and those to its neighbours."""

    tab: var[str] = var("live", init=False)

    def action_show_live(self) -> None:
        """Everything together."""
        self.tab = "live"

    def action_show_logs(self) -> None:
        """The log over the whole screen."""
        self.tab = "logs"

    def action_show_metrics(self) -> None:
        """The charts over the whole screen."""
        self.tab = "metrics"

    def action_show_checkpoints(self) -> None:
        """The checkpoints."""
        self.tab = "checkpoints"

    def action_show_details(self) -> None:
        """All fields."""
        self.tab = "details"

    def action_next_tab(self) -> None:
        """The tab to the right."""
        self.tab = TAB_IDS[(TAB_IDS.index(self.tab) + 1) % len(TAB_IDS)]

    def action_previous_tab(self) -> None:
        """The tab to the left."""
        self.tab = TAB_IDS[(TAB_IDS.index(self.tab) - 1) % len(TAB_IDS)]
