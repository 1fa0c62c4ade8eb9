"""What people do with the charts of a run and its matrix of GPUs."""

from __future__ import annotations

from datetime import timedelta

from textual.reactive import var
from textual.widget import Widget

from tui.screens.job.chart_deck import ChartDeck

SPANS = tuple(timedelta(minutes=minutes) for minutes in (5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60))
SPAN_WORDS = ("5 min", "15 min", "1 h", "6 h", "24 h", "7 d")
FIRST_SPAN = 2


class ChartActions(Widget):
    """The job screen's actions on its charts; the screen watches ``span`` and ``memory_in_matrix``."""

    span: var[int] = var(FIRST_SPAN, init=False)
    memory_in_matrix: var[bool] = var(False, init=False)

    def action_next_chart(self) -> None:
        """Another chart first."""
        self.query_one(ChartDeck).next()

    def action_next_span(self) -> None:
        """A longer time."""
        self.span = min(len(SPANS) - 1, self.span + 1)

    def action_previous_span(self) -> None:
        """A shorter time."""
        self.span = max(0, self.span - 1)

    def action_matrix_metric(self) -> None:
        """Use or memory in the cells."""
        self.memory_in_matrix = not self.memory_in_matrix
