"""A grid of charts: as many as fit, the selected one first; or only one, or one for each of its series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from textual import on
from textual.containers import Container
from textual.reactive import var

from tui.screens.charts.builder import ChartData, is_flat, one_series_each, visible_part
from tui.widgets.charts.line_chart import Hovered, LineChart
from tui.widgets.charts.series_groups import colors_highlights_only

CHART_CELLS = 34
"""Minimum width of a chart when there are several in a row."""
CHART_LINES = 8
"""Minimum height of a chart when there are several in a column."""
TIGHT_CHART_LINES = 7
"""Minimum height of two stacked charts, because two low charts are better than one."""
FLAT_CHART_LINES = 5
"""Height of a row of flat charts, whose values barely change."""
ROOMY_CHART_LINES = 11
"""Minimum height at which charts are placed in fewer, wider columns."""
STRIP_LINES = 5
"""Minimum height of a chart with a single series."""
CROWDED_CHART_DELAY_S = 10.0
"""Seconds between updates of a chart with more series than colors, which must be redrawn as a whole."""

Layout = Literal["grid", "one", "lines"]
LAYOUTS: tuple[Layout, ...] = ("grid", "one", "lines")
"""All charts that fit; only the first one; or a small chart for each series of the first one."""


class ChartGrid(Container, can_focus=True):
    """Lays out charts in the available space; ``next`` brings another one to the front."""

    DEFAULT_CSS = """
    ChartGrid { layout: grid; grid-gutter: 0 1; height: 1fr; width: 1fr; }
    """

    front: var[str] = var("", init=False)
    arrangement: var[Layout] = var("grid", init=False)
    text: var[str] = var("", init=False)
    """Filter: show only charts whose names contain all of these words."""
    counts: var[tuple[int, int]] = var((0, 0), init=False)
    """Number of charts shown, and of charts that have data and pass the filter."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._charts: dict[str, LineChart] = {}
        self._data: tuple[ChartData, ...] = ()
        self._shown: tuple[ChartData, ...] = ()
        self._crowded_charts: dict[str, tuple[float, ChartData]] = {}
        self._moving: set[str] = set()

    def set_charts(self, charts: Sequence[ChartData], *, at_s: float | None = None) -> None:
        """Show these charts, those with data first, flat ones last.

        ``at_s`` is the time in seconds of the newest sample, if only samples are new: crowded charts then
        skip most updates. Without it all charts are redrawn.
        """
        self._data = tuple(sorted(charts, key=lambda chart: not chart.has_data))
        moving = {chart.id for chart in charts if not is_flat(chart)}
        # until the user changes the view, a chart that becomes flat keeps its position
        self._moving = moving if at_s is None else self._moving | moving
        self._arrange(at_s)

    @property
    def front_chart(self) -> ChartData | None:
        """The first chart, on which keys act; None if it has no data."""
        return next((data for data in self._ordered()[:1] if data.series), None)

    @property
    def shown(self) -> tuple[ChartData, ...]:
        return self._shown

    def current_data(self) -> tuple[ChartData, ...]:
        return tuple(map(visible_part, self._shown))

    def widget_of(self, chart_id: str) -> LineChart | None:
        return self._charts.get(chart_id)

    @property
    def raster_cells(self) -> int:
        """Width in cells of the first chart's raster."""
        return self._charts[self._shown[0].id].raster_cells if self._shown else 0

    @on(Hovered)
    def _hovered(self, message: Hovered) -> None:
        """Show the values at the pointer on all charts with the same x axis."""
        for chart in self._charts.values():
            if chart.spec.x_axis == message.chart.spec.x_axis:
                chart.hover(message.x)

    def next(self) -> None:
        ids = [data.id for data in self._data if data.has_data and data.matches(self.text)]
        if ids:
            position = ids.index(self.front) if self.front in ids else 0
            self.front = ids[(position + 1) % len(ids)]

    def on_resize(self) -> None:
        self._arrange()

    watch_front = watch_arrangement = watch_text = on_resize

    def _ordered(self) -> list[ChartData]:
        """Return the charts with data, the selected one first, flat ones last; without any, only one."""
        with_data = [data for data in self._data if data.has_data and data.matches(self.text)]
        with_data = with_data or [self._without_match() if self.text else data for data in self._data[:1]]
        ids = [data.id for data in with_data]
        first = ids.index(self.front) if self.front in ids else 0
        others = with_data[first + 1 :] + with_data[:first]
        return [*with_data[first : first + 1], *sorted(others, key=self._is_flat)]

    def _without_match(self) -> ChartData:
        spec = replace(self._data[0].spec, title="", marks=(), empty_text="no chart has this in its name")
        return ChartData("none", (), spec)

    def _is_flat(self, data: ChartData) -> bool:
        return data.id not in self._moving

    def _charts_that_fit(self) -> tuple[list[ChartData], int, list[int]]:
        """Return the charts that fit, the number of columns, and the minimum height of each row."""
        order = self._ordered()
        order[0] = order[0].finished
        width, height = self.size
        if self.arrangement == "one":
            return order[:1], 1, [1]
        if self.arrangement == "lines":
            lines = one_series_each(order[0]) or order[:1]
            strips = max(1, height // STRIP_LINES)
            columns = min(max(1, width // CHART_CELLS), -(-len(lines) // strips))
            selected = order[0].spec.selected
            names = [line.names[0] if line.names else "" for line in lines]
            room = columns * strips
            begin = names.index(selected) // room * room if selected in names else 0
            lines = lines[begin : begin + room]
            return lines, columns, [STRIP_LINES] * min(strips, -(-len(lines) // columns))
        max_columns = min(max(1, width // CHART_CELLS), len(order))
        for columns in range(1, max_columns):
            shown, rows = self._rows_that_fit(order, columns, height, ROOMY_CHART_LINES)
            if len(shown) == len(order):
                return shown, columns, rows
        shown, rows = self._rows_that_fit(order, max_columns, height, CHART_LINES)
        return shown, max_columns, rows

    def _rows_that_fit(
        self, order: Sequence[ChartData], columns: int, height: int, lines: int
    ) -> tuple[list[ChartData], list[int]]:
        """Return the charts that fit into ``columns`` columns, and the minimum height of each row."""
        for count in range(-(-len(order) // columns), 1, -1):
            shown = order[: columns * count]
            spare = columns * count - len(shown)  # the first chart spans the columns that are left over
            flat = [row > 0 and self._is_flat(shown[row * columns - spare]) for row in range(count)]
            min_lines = TIGHT_CHART_LINES if count == 2 and lines == CHART_LINES else lines
            rows = [FLAT_CHART_LINES if is_flat_row else min_lines for is_flat_row in flat]
            if sum(rows) <= height:
                return list(shown), rows
        return list(order[:columns]), [lines]

    def _may_skip_update(self, data: ChartData, at_s: float | None) -> bool:
        """Return True for a crowded chart that was drawn recently and would only gain a few samples."""
        shown_s, shown = self._crowded_charts.get(data.id, (0.0, None))
        if at_s is not None and shown is not None and 0 <= at_s - shown_s < CROWDED_CHART_DELAY_S:
            drawn_as = replace(shown.spec, start=data.spec.start, end=data.spec.end)
            return shown.names == data.names and drawn_as == data.spec
        if colors_highlights_only(data.series, data.spec):
            self._crowded_charts[data.id] = (at_s or shown_s, data)
        return False

    def _arrange(self, at_s: float | None = None) -> None:
        width, height = self.size
        if not self._data or not width or not height:
            return
        order, columns, rows = self._charts_that_fit()
        if self.arrangement != "lines":
            self.counts = len(order), sum(data.has_data and data.matches(self.text) for data in self._data)
        order = [data.finished for data in order]
        tallest = max(rows)
        self._shown = tuple(order)
        shown = {data.id for data in order}
        self.styles.grid_size_columns, self.styles.grid_size_rows = columns, len(rows)
        self.styles.grid_rows = " ".join(
            "1fr" if min_lines == tallest else str(min_lines) for min_lines in rows
        )
        for chart_id in [chart_id for chart_id in self._charts if "/" in chart_id and chart_id not in shown]:
            self._charts.pop(chart_id).remove()
        for data in order:
            if data.id not in self._charts:
                chart = self._charts[data.id] = LineChart(data.spec)
                self.mount(chart)
        for chart_id, chart in self._charts.items():
            chart.display = chart_id in shown
        for position, data in enumerate(order):
            chart = self._charts[data.id]
            if not self._may_skip_update(data, at_s):
                chart.show(data.series, data.spec)
            spare = 0 if position or self.arrangement == "lines" else columns * len(rows) - len(order)
            chart.styles.column_span = spare + 1
        self._reorder_children([self._charts[data.id] for data in order])

    def _reorder_children(self, charts: Sequence[LineChart]) -> None:
        # a grid that is closing does not mount new charts
        charts = [chart for chart in charts if chart.parent is self]
        present = [child for child in self.children if child in charts]
        if present != charts:
            for before, after in pairwise(charts):
                self.move_child(after, after=before)
