"""A grid of charts: as many as fit, or only the first chart, or a small chart for each of its series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from textual import on
from textual.containers import Container
from textual.reactive import var

from tui.screens.charts.builder import ChartData, is_flat, split_by_series, visible_part
from tui.widgets.charts.line_chart import Hovered, LineChart
from tui.widgets.charts.series_groups import colors_highlights_only

CHART_CELLS = 34
"""Minimum width of a chart if several charts share a row."""
CHART_LINES = 8
"""Minimum height of a chart if several charts share a column."""
TIGHT_CHART_LINES = 7
"""Minimum height of each of two stacked charts, because two low charts show more than one tall chart."""
FLAT_CHART_LINES = 5
"""Height of a row of flat charts, whose values barely change."""
ROOMY_CHART_LINES = 11
"""Minimum height at which charts are placed in fewer, wider columns."""
STRIP_LINES = 5
"""Minimum height of a chart with a single series."""
CROWDED_CHART_DELAY_S = 10.0
"""Seconds between updates of a chart with more series than colors, because each update redraws all of it."""

Layout = Literal["grid", "one", "lines"]
LAYOUTS: tuple[Layout, ...] = ("grid", "one", "lines")
"""``grid``: all charts that fit. ``one``: the first chart. ``lines``: one chart per series of the first."""


class ChartGrid(Container, can_focus=True):
    """Lays out charts in the available space; ``show_next`` puts the next chart first."""

    DEFAULT_CSS = """
    ChartGrid { layout: grid; grid-gutter: 0 1; height: 1fr; width: 1fr; }
    """

    front: var[str] = var("", init=False)
    """Id of the chart that the user put first; empty for the usual order."""
    arrangement: var[Layout] = var("grid", init=False)
    filter_text: var[str] = var("", init=False)
    """Only charts whose names contain all of these words are shown."""
    counts: var[tuple[int, int]] = var((0, 0), init=False)
    """Number of visible charts, and number of charts that have data and pass the filter."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._charts: dict[str, LineChart] = {}
        self._all_charts: tuple[ChartData, ...] = ()
        self._shown_charts: tuple[ChartData, ...] = ()
        self._crowded_charts: dict[str, tuple[float, ChartData]] = {}
        self._ids_not_flat: set[str] = set()

    def set_charts(self, charts: Sequence[ChartData], *, at_s: float | None = None) -> None:
        """Show these charts: charts with data first, flat charts last.

        ``at_s`` is the time in seconds of the newest sample, if nothing but samples is new: crowded charts
        then skip most updates. Without it, all charts are redrawn.
        """
        self._all_charts = tuple(sorted(charts, key=lambda chart: not chart.has_data))
        varying_ids = {chart.id for chart in charts if not is_flat(chart)}
        # a chart that becomes flat keeps its position until the user changes the view
        self._ids_not_flat = varying_ids if at_s is None else self._ids_not_flat | varying_ids
        self._arrange(at_s)

    @property
    def front_chart(self) -> ChartData | None:
        """The first chart, to which actions apply; None if it has no data."""
        return next((data for data in self._ordered()[:1] if data.series), None)

    @property
    def shown_charts(self) -> tuple[ChartData, ...]:
        return self._shown_charts

    def visible_samples(self) -> tuple[ChartData, ...]:
        """Return the shown charts with only the visible range and series, for export."""
        return tuple(map(visible_part, self._shown_charts))

    def widget_of(self, chart_id: str) -> LineChart | None:
        return self._charts.get(chart_id)

    @property
    def raster_cells(self) -> int:
        """Width in cells of the first chart's raster."""
        return self._charts[self._shown_charts[0].id].raster_cells if self._shown_charts else 0

    @on(Hovered)
    def _hovered(self, message: Hovered) -> None:
        """Show the values at the pointer on all charts with the same x axis."""
        for chart in self._charts.values():
            if chart.spec.x_axis == message.chart.spec.x_axis:
                chart.hover(message.x)

    def show_next(self) -> None:
        ids = [data.id for data in self._all_charts if data.has_data and data.matches(self.filter_text)]
        if ids:
            index = ids.index(self.front) if self.front in ids else 0
            self.front = ids[(index + 1) % len(ids)]

    def on_resize(self) -> None:
        self._arrange()

    watch_front = watch_arrangement = watch_filter_text = on_resize

    def _ordered(self) -> list[ChartData]:
        """Return the charts with data that pass the filter: ``front`` first, flat charts last.

        If there are none, return a single chart, which shows a text instead.
        """
        with_data = [data for data in self._all_charts if data.has_data and data.matches(self.filter_text)]
        with_data = with_data or [
            self._no_match_chart() if self.filter_text else data for data in self._all_charts[:1]
        ]
        ids = [data.id for data in with_data]
        front_index = ids.index(self.front) if self.front in ids else 0
        other_charts = with_data[front_index + 1 :] + with_data[:front_index]
        return [*with_data[front_index : front_index + 1], *sorted(other_charts, key=self._counts_as_flat)]

    def _no_match_chart(self) -> ChartData:
        empty_text = "no chart has these words in its name"
        spec = replace(self._all_charts[0].spec, title="", marks=(), empty_text=empty_text)
        return ChartData("none", (), spec)

    def _counts_as_flat(self, data: ChartData) -> bool:
        return data.id not in self._ids_not_flat

    def _charts_that_fit(self) -> tuple[list[ChartData], int, list[int]]:
        """Return the charts that fit, the number of columns, and the minimum height of each row."""
        ordered_charts = self._ordered()
        ordered_charts[0] = ordered_charts[0].finished
        width, height = self.size
        if self.arrangement == "one":
            return ordered_charts[:1], 1, [1]
        if self.arrangement == "lines":
            series_charts = split_by_series(ordered_charts[0]) or ordered_charts[:1]
            row_count = max(1, height // STRIP_LINES)
            columns = min(max(1, width // CHART_CELLS), -(-len(series_charts) // row_count))
            selected = ordered_charts[0].spec.selected
            names = [line.names[0] if line.names else "" for line in series_charts]
            max_charts = columns * row_count
            first_index = names.index(selected) // max_charts * max_charts if selected in names else 0
            series_charts = series_charts[first_index : first_index + max_charts]
            return series_charts, columns, [STRIP_LINES] * min(row_count, -(-len(series_charts) // columns))
        max_columns = min(max(1, width // CHART_CELLS), len(ordered_charts))
        for columns in range(1, max_columns):
            shown_charts, row_heights = self._rows_that_fit(
                ordered_charts, columns, height, ROOMY_CHART_LINES
            )
            if len(shown_charts) == len(ordered_charts):
                return shown_charts, columns, row_heights
        shown_charts, row_heights = self._rows_that_fit(ordered_charts, max_columns, height, CHART_LINES)
        return shown_charts, max_columns, row_heights

    def _rows_that_fit(
        self, ordered_charts: Sequence[ChartData], columns: int, height: int, min_lines: int
    ) -> tuple[list[ChartData], list[int]]:
        """Return the charts that fit into ``columns`` columns, and the minimum height of each row."""
        for row_count in range(-(-len(ordered_charts) // columns), 1, -1):
            charts = ordered_charts[: columns * row_count]
            spare_columns = columns * row_count - len(charts)  # the first chart also spans the spare columns
            is_flat_row = [
                row > 0 and self._counts_as_flat(charts[row * columns - spare_columns])
                for row in range(row_count)
            ]
            min_row_lines = TIGHT_CHART_LINES if row_count == 2 and min_lines == CHART_LINES else min_lines
            row_heights = [
                FLAT_CHART_LINES if is_flat_row[row] else min_row_lines for row in range(row_count)
            ]
            if sum(row_heights) <= height:
                return list(charts), row_heights
        return list(ordered_charts[:columns]), [min_lines]

    def _may_skip_update(self, data: ChartData, at_s: float | None) -> bool:
        """Return True for a crowded chart that was drawn recently if only its newest samples are missing."""
        drawn_s, drawn_data = self._crowded_charts.get(data.id, (0.0, None))
        if at_s is not None and drawn_data is not None and 0 <= at_s - drawn_s < CROWDED_CHART_DELAY_S:
            unmoved_spec = replace(drawn_data.spec, start=data.spec.start, end=data.spec.end)
            return drawn_data.names == data.names and unmoved_spec == data.spec
        if colors_highlights_only(data.series, data.spec):
            self._crowded_charts[data.id] = (at_s or drawn_s, data)
        return False

    def _arrange(self, at_s: float | None = None) -> None:
        width, height = self.size
        if not self._all_charts or not width or not height:
            return
        charts, columns, row_heights = self._charts_that_fit()
        if self.arrangement != "lines":
            self.counts = (
                len(charts),
                sum(data.has_data and data.matches(self.filter_text) for data in self._all_charts),
            )
        charts = [data.finished for data in charts]
        max_row_lines = max(row_heights)
        self._shown_charts = tuple(charts)
        shown_ids = {data.id for data in charts}
        self.styles.grid_size_columns, self.styles.grid_size_rows = columns, len(row_heights)
        self.styles.grid_rows = " ".join(
            "1fr" if min_lines == max_row_lines else str(min_lines) for min_lines in row_heights
        )
        for chart_id in [
            chart_id for chart_id in self._charts if "/" in chart_id and chart_id not in shown_ids
        ]:
            self._charts.pop(chart_id).remove()
        for data in charts:
            if data.id not in self._charts:
                chart = self._charts[data.id] = LineChart(data.spec)
                self.mount(chart)
        for chart_id, chart in self._charts.items():
            chart.display = chart_id in shown_ids
        for index, data in enumerate(charts):
            chart = self._charts[data.id]
            if not self._may_skip_update(data, at_s):
                chart.show(data.series, data.spec)
            spare_columns = (
                0 if index or self.arrangement == "lines" else columns * len(row_heights) - len(charts)
            )
            chart.styles.column_span = spare_columns + 1
        self._reorder_children([self._charts[data.id] for data in charts])

    def _reorder_children(self, charts: Sequence[LineChart]) -> None:
        # when the grid is closing, new charts are not mounted
        charts = [chart for chart in charts if chart.parent is self]
        current_order = [child for child in self.children if child in charts]
        if current_order != charts:
            for before, after in pairwise(charts):
                self.move_child(after, after=before)
