"""As many charts as fit, the chosen one first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from textual.containers import Container
from textual.reactive import var

from tui.insight.series import Series
from tui.widgets.charts.line_chart import LineChart

CHART_CELLS = 34
"""The least width of a chart when there are several side by side."""
CHART_LINES = 8
"""The least height likewise."""


@dataclass(frozen=True, slots=True)
class ChartData:
    """What one chart shows over ``start`` … ``end`` (epoch seconds)."""

    id: str
    title: str
    series: tuple[Series, ...]
    start: float
    end: float
    unit: Callable[[float], str]
    y_min: float | None = None
    y_max: float | None = None
    tick_base: Literal[2, 10] = 10
    end_label: str = "now"
    note: str = ""

    @property
    def has_data(self) -> bool:
        """Whether any series has a sample."""
        return any(series.values for series in self.series)


class ChartDeck(Container):
    """Lays charts out in a grid by the room there is; ``next`` brings another to the front."""

    DEFAULT_CSS = """
    ChartDeck { layout: grid; grid-gutter: 0 1; height: 1fr; width: 1fr; }
    """

    front: var[str] = var("")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._charts: dict[str, LineChart] = {}
        self._data: tuple[ChartData, ...] = ()

    def set_charts(self, charts: Sequence[ChartData]) -> None:
        """Show these, those with data first."""
        self._data = tuple(sorted(charts, key=lambda chart: not chart.has_data))
        for data in self._data:
            if data.id not in self._charts:
                chart = LineChart(
                    data.title, unit=data.unit, y_min=data.y_min, y_max=data.y_max, tick_base=data.tick_base
                )
                self._charts[data.id] = chart
                self.mount(chart)
        self._arrange()

    def next(self) -> None:
        """Bring the next chart with data to the front."""
        ids = [data.id for data in self._data if data.has_data]
        if ids:
            position = ids.index(self.front) if self.front in ids else 0
            self.front = ids[(position + 1) % len(ids)]

    def watch_front(self) -> None:
        """Another chart comes first."""
        self._arrange()

    def on_resize(self) -> None:
        """More or fewer may fit."""
        self._arrange()

    def _arrange(self) -> None:
        width, height = self.size
        if not self._data or not width or not height:
            return
        columns = max(1, width // CHART_CELLS)
        rows = max(1, height // CHART_LINES)
        with_data = [data for data in self._data if data.has_data] or list(self._data[:1])
        columns = min(columns, len(with_data))
        rows = min(rows, -(-len(with_data) // columns))
        ids = [data.id for data in with_data]
        first = ids.index(self.front) if self.front in ids else 0
        order = (with_data[first:] + with_data[:first])[: columns * rows]
        shown = {data.id for data in order}
        self.styles.grid_size_columns, self.styles.grid_size_rows = columns, rows
        for chart_id, chart in self._charts.items():
            chart.display = chart_id in shown
        for data in order:
            chart = self._charts[data.id]
            chart.chart_title, chart.note = data.title, data.note
            chart.set_data(data.series, start=data.start, end=data.end, end_label=data.end_label)
        for position, data in enumerate(order):
            last = position == len(order) - 1
            self._charts[data.id].styles.column_span = columns * rows - position if last else 1
        self._charts_in_order([self._charts[data.id] for data in order])

    def _charts_in_order(self, charts: Sequence[LineChart]) -> None:
        """Put the charts shown in that order on the grid."""
        present = [child for child in self.children if child in charts]
        if present != list(charts):
            for before, after in pairwise(charts):
                self.move_child(after, after=before)
