"""What people do with the log of a run; the pane does it."""

from __future__ import annotations

from textual.widget import Widget

from tui.screens.job.log_pane import LogPane


class LogActions(Widget):
    """The job screen's actions on its log."""

    @property
    def log_pane(self) -> LogPane:
        """The pane they work on."""
        return self.query_one(LogPane)

    def action_toggle_follow(self) -> None:
        """Follow the end of the log, or not."""
        self.log_pane.toggle_follow()

    def action_find_in_log(self) -> None:
        """Type a text to look for."""
        self.log_pane.open_field("find")

    def action_filter_log(self) -> None:
        """Type what log lines must contain."""
        self.log_pane.open_field("filter")

    def action_next_match(self) -> None:
        """The next line with the text."""
        self.log_pane.view.action_next_match()

    def action_previous_match(self) -> None:
        """The previous line with the text."""
        self.log_pane.view.action_previous_match()

    def action_toggle_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.log_pane.toggle_wrap()

    def action_next_time_mode(self) -> None:
        """Another way to show times."""
        self.log_pane.next_time_mode()
