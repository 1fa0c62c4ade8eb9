"""What a chart says when the mouse asks something of it. x is in its axis' unit."""

from __future__ import annotations

from textual.message import Message
from textual.widget import Widget


class _ChartMessage(Message):
    """Something asked of a chart, which is the message's ``control``."""

    def __init__(self, chart: Widget) -> None:
        self.chart = chart
        super().__init__()

    @property
    def control(self) -> Widget:
        """The chart it happened in."""
        return self.chart


class Zoomed(_ChartMessage):
    """Make the window ``factor`` times as long, around a place or none in particular."""

    def __init__(self, chart: Widget, factor: float, around: float | None) -> None:
        super().__init__(chart)
        self.factor, self.around = factor, around


class Panned(_ChartMessage):
    """Move the window by so much, to the right when positive."""

    def __init__(self, chart: Widget, by: float) -> None:
        super().__init__(chart)
        self.by = by


class Pointed(_ChartMessage):
    """Read the values at a place."""

    def __init__(self, chart: Widget, x: float) -> None:
        super().__init__(chart)
        self.x = x


class SeriesClicked(_ChartMessage):
    """Switch a series off, or on again."""

    def __init__(self, chart: Widget, name: str) -> None:
        super().__init__(chart)
        self.name = name
