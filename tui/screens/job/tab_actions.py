"""Going from tab to tab of the job screen."""

from __future__ import annotations

from textual.reactive import var
from textual.widget import Widget

from tui.screens.job.layout import TAB_IDS


class TabActions(Widget):
    """One action for each tab, and those to its neighbours."""

    tab: var[str] = var("live", init=False)

    def show_tab(self, tab: str) -> None:
        """Show a tab; if it is shown already, give it the keyboard."""
        if tab == self.tab:
            self.focus_tab(tab)
        else:
            self.tab = tab

    def focus_tab(self, tab: str) -> None:
        """Give the keyboard to what matters most on a tab."""
        raise NotImplementedError

    def action_show_live(self) -> None:
        """Everything together."""
        self.show_tab("live")

    def action_show_logs(self) -> None:
        """The log over the whole screen."""
        self.show_tab("logs")

    def action_show_metrics(self) -> None:
        """The charts over the whole screen."""
        self.show_tab("metrics")

    def action_show_checkpoints(self) -> None:
        """The checkpoints."""
        self.show_tab("checkpoints")

    def action_show_details(self) -> None:
        """All fields."""
        self.show_tab("details")

    def action_next_tab(self) -> None:
        """The tab to the right."""
        self.show_tab(TAB_IDS[(TAB_IDS.index(self.tab) + 1) % len(TAB_IDS)])

    def action_previous_tab(self) -> None:
        """The tab to the left."""
        self.show_tab(TAB_IDS[(TAB_IDS.index(self.tab) - 1) % len(TAB_IDS)])
