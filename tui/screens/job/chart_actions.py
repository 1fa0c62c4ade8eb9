"""The job screen's actions on the charts and the GPU matrix, by keyboard and mouse."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from textual import on
from textual.reactive import var
from textual.timer import Timer
from textual.widget import Widget

from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import next_smoothing
from tui.screens.job.chart_grid import LAYOUTS, ChartGrid
from tui.screens.job.chart_view import FIRST_SPAN, X_AXES, ChartView, longer, shorter
from tui.screens.job.charts import ChartBuilder
from tui.widgets.charts.line_chart import LineChart, Panned, Pointed, SeriesClicked, Zoomed
from tui.widgets.charts.ticks import Window

DEBOUNCE_S = 0.3
"""Delay after dragging or zooming before the samples of the new time range are requested."""
FAST_CURSOR_CELLS = 10
PAN_SHARE = 0.5


class ChartActions(Widget):
    """The job screen's actions on its charts; the screen watches ``view`` and ``memory_in_matrix``.

    The screen implements ``run_shown``, the newest snapshot, and ``read_window``, which requests samples.
    """

    view: var[ChartView] = var(ChartView(), init=False)
    memory_in_matrix: var[bool] = var(False, init=False)
    nodes_large: var[bool] = var(False, init=False)
    node_history: var[bool] = var(False, init=False)
    worst_first: var[bool] = var(False, init=False)

    maker: ChartBuilder
    _settle_timer: Timer | None = None

    @property
    def run_shown(self) -> RunSnapshot | None:
        """The newest snapshot, or None before the first one."""
        raise NotImplementedError

    def read_window(self) -> None:
        """Request the samples of the visible time range, at a suitable resolution."""
        raise NotImplementedError

    def _reach(self) -> tuple[float, float] | None:
        run = self.run_shown
        return None if run is None else self.maker.reach(run)

    def span_to_read(self) -> tuple[timedelta, timedelta | None]:
        """Return how far back to read, and for how long; a length of None reads up to the newest sample."""
        window, reach = self.view.window, self._reach()
        if (window.follows and window.span is not None) or reach is None:
            return timedelta(seconds=window.span or FIRST_SPAN.total_seconds()), None
        start, end = window.bounds(*reach)
        return timedelta(seconds=reach[1] - start), timedelta(seconds=end - start)

    def _show_window(self, window: Window, *, at_once: bool = True) -> None:
        if window == self.view.window:
            return
        self.view = replace(self.view, window=window, full_range=False)
        if self._settle_timer is not None:
            self._settle_timer.stop()
        if at_once:
            self.read_window()
        else:
            self._settle_timer = self.set_timer(DEBOUNCE_S, self.read_window)

    # Live and metrics tabs

    def action_next_chart(self) -> None:
        self.query_one(ChartGrid).next()

    def action_next_span(self) -> None:
        self._show_preset(longer(self.view.window))

    def action_previous_span(self) -> None:
        self._show_preset(shorter(self.view.window))

    def _show_preset(self, window: Window) -> None:
        whole = self.view.full_range
        self._show_window(window)
        self.view = replace(self.view, full_range=whole)

    def action_matrix_metric(self) -> None:
        """Toggle between utilization and memory in the GPU matrix."""
        self.memory_in_matrix = not self.memory_in_matrix

    @on(Zoomed)
    def _zoom(self, message: Zoomed) -> None:
        message.stop()
        reach = self._reach()
        if reach is not None:
            around = None if message.around is None else self._time_on(message.chart, message.around)
            self._show_window(self.view.window.zoomed(message.factor, around, *reach), at_once=False)

    @on(Panned)
    def _pan(self, message: Panned) -> None:
        message.stop()
        reach = self._reach()
        if reach is None or not isinstance(message.chart, LineChart):
            return
        spec = message.chart.spec
        length = spec.end - spec.start
        start, end = self.view.window.bounds(*reach)
        self._show_window(self.view.window.panned(message.by / length * (end - start), *reach), at_once=False)

    @on(Pointed)
    def _point(self, message: Pointed) -> None:
        message.stop()
        self.view = replace(self.view, cursor=self._time_on(message.chart, message.x))

    @on(SeriesClicked)
    def _switch(self, message: SeriesClicked) -> None:
        message.stop()
        self.view = replace(self.view, hidden=self.view.hidden ^ {message.name})

    def _time_on(self, chart: Widget, x: float) -> float:
        """Return the time at `x` of a chart's axis, converting from steps if needed."""
        run = self.run_shown
        if run is not None and isinstance(chart, LineChart) and chart.spec.x_axis == "step":
            return self.maker.clock(run).time(x)
        return x

    def leave_charts(self) -> bool:
        """Remove the cursor, else the selection, else close the node table; False if there was none."""
        if self.view.cursor is not None:
            self.view = replace(self.view, cursor=None)
        elif self.view.selected is not None:
            self.view = replace(self.view, selected=None)
        elif self.nodes_large:
            self.nodes_large = False
        else:
            return False
        return True

    # Metrics tab

    def action_cursor_left(self) -> None:
        self._move_cursor(-1)

    def action_cursor_right(self) -> None:
        self._move_cursor(1)

    def action_cursor_far_left(self) -> None:
        self._move_cursor(-FAST_CURSOR_CELLS)

    def action_cursor_far_right(self) -> None:
        self._move_cursor(FAST_CURSOR_CELLS)

    def _move_cursor(self, cells: int) -> None:
        reach, deck = self._reach(), self.query_one(ChartGrid)
        chart = deck.front_chart
        if reach is None or chart is None:
            return
        widget = deck.widget_of(deck.shown[0].id) if deck.shown else None
        across = widget.raster_cells if widget is not None else 0
        start, end = self.view.window.bounds(*reach)
        cell = (end - start) / max(1, across)
        held = self.view.cursor
        if held is None or not start <= held <= end:
            x = end - cell / 2 if cells < 0 else start + cell / 2
        else:
            x = min(max(held + cells * cell, reach[0]), reach[1])
        window = self.view.window.showing(x, *reach)
        self._show_window(window, at_once=False)
        self.view = replace(self.view, cursor=x)

    def action_pan_back(self) -> None:
        self._pan_by(-PAN_SHARE)

    def action_pan_on(self) -> None:
        self._pan_by(PAN_SHARE)

    def _pan_by(self, share: float) -> None:
        reach = self._reach()
        if reach is not None:
            start, end = self.view.window.bounds(*reach)
            self._show_window(self.view.window.panned(share * (end - start), *reach), at_once=False)

    def action_first_time(self) -> None:
        reach = self._reach()
        if reach is not None:
            self._show_window(self.view.window.at_begin(*reach), at_once=False)

    def action_newest_time(self) -> None:
        """Go to the newest sample and follow."""
        self._show_window(self.view.window.at_end())

    def action_x_axis(self) -> None:
        place = X_AXES.index(self.view.x_axis)
        self.view = replace(self.view, x_axis=X_AXES[(place + 1) % len(X_AXES)])

    def action_smoothing(self) -> None:
        """Switch to the next smoothing level; after the strongest, turn smoothing off."""
        self.view = replace(self.view, smoothing=next_smoothing(self.view.smoothing))

    def action_log_scale(self) -> None:
        self.view = replace(self.view, log=not self.view.log)

    def action_chart_layout(self) -> None:
        """Cycle through the layouts: all charts, one large chart, one chart per series."""
        deck = self.query_one(ChartGrid)
        deck.arrangement = LAYOUTS[(LAYOUTS.index(deck.arrangement) + 1) % len(LAYOUTS)]
        self.nodes_large = False

    def action_next_series(self) -> None:
        self._select(1)

    def action_previous_series(self) -> None:
        self._select(-1)

    def _names(self) -> tuple[str, ...]:
        chart = self.query_one(ChartGrid).front_chart
        return chart.names if chart is not None else ()

    def _select(self, by: int) -> None:
        names = self._names()
        if names:
            held = self.view.selected
            place = (names.index(held) + by) % len(names) if held in names else (0 if by > 0 else -1)
            self.view = replace(self.view, selected=names[place])

    def action_toggle_series(self) -> None:
        """Toggle the visibility of the selected series; without a selection, of the first one."""
        names = self._names()
        chosen = self.view.selected if self.view.selected in names else (names[0] if names else None)
        if chosen is not None:
            self.view = replace(self.view, selected=chosen, hidden=self.view.hidden ^ {chosen})

    def action_only_series(self) -> None:
        """Hide all other series of the chart; press again to show them."""
        names = self._names()
        if self.view.selected in names:
            others = frozenset(names) - {self.view.selected}
            hidden = self.view.hidden - set(names)
            alone = others <= self.view.hidden
            self.view = replace(self.view, hidden=hidden if alone else hidden | others)

    def action_all_series(self) -> None:
        self.view = replace(self.view, hidden=frozenset())

    def action_nodes(self) -> None:
        """Toggle between the charts and a large table of all nodes."""
        self.nodes_large = not self.nodes_large

    def action_sort_nodes(self) -> None:
        """Toggle between listing conspicuous nodes first and the usual order."""
        self.worst_first = not self.worst_first

    def action_node_history(self) -> None:
        """Toggle between the nodes' history and their current values."""
        self.node_history = not self.node_history
