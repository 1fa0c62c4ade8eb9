"""The field that filters charts by name."""

from __future__ import annotations

from textual.widgets import Input


class ChartFilter(Input):
    """A line above the charts, shown while it is typed into or has text."""

    DEFAULT_CSS = """
    ChartFilter { display: none; }
    ChartFilter.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(placeholder="words in the name of a chart: reward", id="chart-filter", compact=True)

    def open(self) -> None:
        self.add_class("-open")
        self.screen.set_focus(self)  # immediately: focus() defers and would lose typed keys

    def on_blur(self) -> None:
        self.set_class(bool(self.value), "-open")

    def clear_text(self) -> bool:
        """Remove the text and the line; return False if there was none."""
        was_open = self.has_class("-open")
        self.value = ""
        self.remove_class("-open")
        return was_open
