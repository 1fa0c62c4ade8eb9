"""The charts and the nodes of a run, with all actions on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer

from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.charts.builder import (
    ChartData,
    event_marks,
    full_range,
    run_charts,
    step_time_map,
    time_range,
    visible_part,
)
from tui.screens.charts.controls import WHOLE_RANGE_TEXT, ChartControls
from tui.screens.charts.grid import LAYOUTS, Layout
from tui.screens.charts.time_row import TimeRowContent
from tui.screens.charts.view import X_AXES, ChartView, next_length
from tui.screens.job.log_bar import NodeChosen
from tui.screens.job.node_tables import MatrixOptions, NodesPane
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.charts.ticks import Window
from tui.widgets.gpu_matrix import GpuMatrix


class MetricsPane(ChartControls, Horizontal):
    """Nodes and charts on the tabs Live and Metrics.

    ``request_samples(span, visible)`` requests the samples of the last ``span``, or of the whole run, at a
    resolution that suits a visible range of the length ``visible``, by default of the length ``span``.
    """

    snapshot: var[RunSnapshot | None] = var(None, init=False)
    view: var[ChartView] = var(ChartView(), init=False)
    matrix: var[MatrixOptions] = var(MatrixOptions(), init=False)
    nodes_large: var[bool] = var(False, init=False)
    """True while the nodes fill the pane, without charts beside them."""

    @dataclass
    class ReadoutMoved(Message):
        """The user moved the readout to this time (epoch seconds)."""

        at_s: float

    @dataclass
    class Pinned(Message):
        """The user pinned or unpinned a chart; ``pins`` are the pinned charts now."""

        pins: tuple[str, ...]

    class PickingEnded(Message):
        """The user has finished picking a node, so another widget should get the focus."""

    def __init__(
        self,
        request_samples: Callable[[timedelta | None, timedelta | None], object],
        *,
        memory_in_matrix: bool = False,
        pins: tuple[str, ...] = (),
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.set_reactive(MetricsPane.view, ChartView(pins=pins))
        self.set_reactive(MetricsPane.matrix, MatrixOptions(memory=memory_in_matrix))
        self._request_samples = request_samples
        self._nodes_pane = NodesPane(id="nodes")
        self._tab = ""
        self._node_lines_above = 0
        """Height of the nodes above the charts; 0 if they are elsewhere."""
        self._charts_drawn_at: datetime | None = None
        self._chart_below_nodes: ChartData | None = None
        self._read_timer: Timer | None = None
        """Delays reading samples until zooming or panning pauses."""
        self._follows_log = True
        """True if the readout is at the log's cursor; False once the user has moved the readout."""
        self._paused_window = self.view.window
        """The visible range when zooming or panning last paused, which the log shows."""

    def compose(self) -> ComposeResult:
        yield self._nodes_pane
        yield self.chart_filter
        yield self.grid

    def on_mount(self) -> None:
        for attribute in ("arrangement", "filter_text"):
            self.watch(self.grid, attribute, self._charts_laid_out, init=False)

    # Data

    def watch_snapshot(self, previous: RunSnapshot | None, run: RunSnapshot | None) -> None:
        """Show a newer snapshot: nodes if they changed, and charts."""
        if run is None:
            return
        if previous is None or previous.metrics is not run.metrics or previous.findings != run.findings:
            self._show_nodes()
        drawn_at = self._charts_drawn_at
        is_live = previous is not None and previous.log_read and run.log_read
        # redraw every five seconds once the log is read: a column of a chart usually covers more
        if not is_live or drawn_at is None or not timedelta() < run.at - drawn_at < timedelta(seconds=5):
            self._show_charts(at_s=run.at.timestamp())

    def show_tab(self, tab: str) -> None:
        """Switch to a tab of the job screen; on Metrics, all metrics of the trainer have charts."""
        self._tab = tab
        self._show_nodes()
        self.view = replace(self.view, every_metric=tab == "metrics")
        self._show_charts()

    @property
    def _has_node_column(self) -> bool:
        """True if the nodes are beside the charts, or alone, so that a chart may fit below them."""
        if self._tab == "live" or self.nodes_large:
            return True
        is_grid = self.grid.arrangement == "grid" and not self.grid.filter_text
        return is_grid and not self._node_lines_above and self.screen.has_class("-wide")

    @property
    def _node_snapshots(self) -> Sequence[NodeSnapshot]:
        metrics = self.snapshot.metrics if self.snapshot is not None else None
        return metrics.nodes if metrics is not None else ()

    def _place_nodes(self) -> None:
        """On Metrics, put few nodes above the charts, and more nodes beside or in place of the charts."""
        node_count = len(self._node_snapshots)
        has_room = node_count > 0 and 3 * (1 + node_count) <= self.size.height
        is_above = self._tab == "metrics" and has_room and not self.nodes_large
        lines = 1 + node_count if is_above else 0
        self.update_classes({"-nodes-large": self.nodes_large, "-nodes-above": is_above})
        if self._node_lines_above != lines:
            self._node_lines_above = lines
            self._nodes_pane.styles.height = lines or None
            self.call_after_refresh(self._nodes_pane.on_resize)  # Textual may not post ``Resize``

    def on_resize(self) -> None:
        self._place_nodes()
        self.call_after_refresh(self._nodes_pane.on_resize)  # Textual posts no ``Resize`` for the first size

    def show_node(self, node: str | None) -> None:
        self.view = replace(self.view, node=node, selected=None)

    def shown_samples(self) -> tuple[ChartData, ...]:
        """Return the visible samples of all charts on the screen, for export."""
        charts_below_nodes = (
            (visible_part(self._chart_below_nodes),) if self._chart_below_nodes is not None else ()
        )
        return (*self.grid.visible_samples(), *charts_below_nodes)

    def _show_nodes(self) -> None:
        run = self.snapshot
        self._place_nodes()
        if run is not None:
            options = replace(self.matrix, over_time=self.matrix.over_time and self.nodes_large)
            gpus = self._node_snapshots[0].gpus if len(self._node_snapshots) == 1 else ()
            if self.nodes_large:
                options = replace(options, node=self.view.node)
            elif self._tab == "live" and 0 < len(gpus) < self._nodes_pane.size.height:
                options = replace(options, node=self._node_snapshots[0].name)
            self._nodes_pane.show(run, options, time_range(run, self.view))

    def _show_charts(self, at_s: float | None = None) -> None:
        if self.snapshot is not None and self._tab in ("live", "metrics"):
            self._charts_drawn_at = self.snapshot.at
            charts = run_charts(self.snapshot, self.view)
            candidates = [chart for chart in charts if self.nodes_large or chart.id != self.grid.front]
            self._chart_below_nodes = self._nodes_pane.show_chart(candidates if self._has_node_column else ())
            self.grid.set_charts(
                [chart for chart in charts if chart is not self._chart_below_nodes], at_s=at_s
            )

    @on(NodesPane.SpaceChanged)
    def _charts_laid_out(self) -> None:
        self._show_nodes()
        self._show_charts()

    def watch_view(self, view: ChartView) -> None:
        self._nodes_pane.matrix.point_at(view.node or view.selected)
        self._show_charts()
        if self.nodes_large:
            self._show_nodes()

    def watch_matrix(self) -> None:
        self._show_nodes()

    def watch_nodes_large(self) -> None:
        self._show_nodes()
        if self._tab == "metrics":
            self.take_focus()

    # Focus

    @property
    def picks_node(self) -> bool:
        """True while the nodes beside the charts have the focus."""
        return self._nodes_pane.matrix.has_focus and not (self._tab == "metrics" and self.nodes_large)

    def take_focus(self) -> None:
        self.screen.set_focus(self._nodes_pane.matrix if self.nodes_large else self.grid)

    def action_pick_node(self) -> None:
        if self.picks_node:
            self.post_message(self.PickingEnded())
        elif self._tab == "metrics" and self.nodes_large:
            self.nodes_large = False
        else:
            self._reveal_nodes()
            self.screen.set_focus(self._nodes_pane.matrix)

    def _reveal_nodes(self) -> None:
        """On Metrics, show the nodes if there is no room for them beside the charts."""
        if not self._nodes_pane.display:
            self.nodes_large = True

    @on(GpuMatrix.NodeSelected)
    def _node_chosen(self, message: GpuMatrix.NodeSelected) -> None:
        shows_gpus = self.nodes_large and self.view.node is not None
        # the rows of a single node are its GPUs
        nodes = self._node_snapshots
        name = nodes[0].name if len(nodes) == 1 else message.name
        self.post_message(NodeChosen(None if shows_gpus or self.view.node == name else name))

    def step_back(self) -> bool:
        """Reset the readout, else selection, large nodes, filter or layout; return False if none is set."""
        if self.view.cursor is not None and not self._follows_log:
            self.view = replace(self.view, cursor=None)
        elif self.view.selected is not None:
            self.view = replace(self.view, selected=None)
        elif self.nodes_large:
            self.nodes_large = False
        elif self._tab == "metrics" and self.chart_filter.clear_text():
            self.take_focus()
        elif self._tab == "metrics" and self.grid.arrangement == "one":
            self._lay_out_charts("grid")
        else:
            return False
        return True

    # Time range

    def full_range(self) -> tuple[float, float] | None:
        return None if self.snapshot is None else full_range(self.snapshot)

    def time_row_content(self) -> TimeRowContent:
        """Return the content of the time row, which charts and log share."""
        run, view = self.snapshot, self.view
        if run is None:
            return TimeRowContent(view)
        notes = () if view.x_axis == "relative" else (f"by {view.x_axis}",)
        return TimeRowContent(view, *full_range(run), marks=event_marks(run), notes=notes)

    @property
    def log_range(self) -> tuple[float | None, float | None]:
        """Time range of the log (epoch seconds): the charts' range when zooming or panning last paused.

        If the range follows the newest lines, its start moves in steps of a 20th of its length.
        """
        window = self._paused_window
        if self.snapshot is None or window.span is None:
            return None, None
        start, end = time_range(self.snapshot, replace(self.view, window=window))
        if not window.follows:
            return start, end
        step = window.span / 20
        return start // step * step, None

    def _read_window(self) -> None:
        """Request the samples of the visible time range."""
        window, full_range = self.view.window, self.full_range()
        self._paused_window = window
        if window.follows or full_range is None:
            self._request_samples(None if window.span is None else timedelta(seconds=window.span), None)
        else:
            start, end = window.bounds(*full_range)
            self._request_samples(timedelta(seconds=full_range[1] - start), timedelta(seconds=end - start))

    def include_time(self, at_s: float) -> None:
        """Move the visible range so that it includes a time (epoch seconds)."""
        full_range = self.full_range()
        if full_range is not None:
            self.show_window(self.view.window.showing(at_s, *full_range))

    def show_window(self, window: Window, *, at_once: bool = True) -> None:
        if window == self.view.window:
            return
        self.view = replace(self.view, window=window)
        if self._read_timer is not None:
            self._read_timer.stop()
        if at_once:
            self._read_window()
        else:
            self._read_timer = self.set_timer(0.3, self._read_window)

    def cycle_length(self, step: int) -> None:
        full_range = self.full_range()
        if full_range is not None:
            self.show_window(next_length(self.view, step, full_range, "clock", cycles=True))

    def action_first_time(self) -> None:
        full_range = self.full_range()
        if full_range is not None:
            first_window = self.view.window.around(full_range[0], *full_range)
            if first_window == self.view.window:
                self.notify(
                    WHOLE_RANGE_TEXT if first_window.span is None else "The start of the run is shown."
                )
            self.show_window(first_window, at_once=False)

    def action_newest_time(self) -> None:
        newest_window = replace(self.view.window, end=None)
        if newest_window == self.view.window:
            self.notify("The newest samples are shown.")
        self.show_window(newest_window)

    # Cursor

    def follow_log(self, at_s: float | None) -> None:
        """Move the readout to the time of the log's cursor (epoch seconds); None removes it."""
        self._follows_log = True
        self.view = replace(self.view, cursor=at_s)

    def set_cursor(self, at_s: float) -> None:
        self._follows_log = False
        self.view = replace(self.view, cursor=at_s)
        self.post_message(self.ReadoutMoved(at_s))

    def to_range_unit(self, chart: LineChart, x: float) -> float:
        """Return the time at `x` on a chart's axis, which may be in steps."""
        return step_time_map(self.snapshot).time(x) if chart.spec.x_axis == "step" else x

    # Charts and series

    def action_filter_charts(self) -> None:
        self.nodes_large = False
        super().action_filter_charts()

    def show_chart(self, chart_id: str) -> None:
        self.grid.front = chart_id
        self._lay_out_charts("one")

    def action_pin(self) -> None:
        chart = self.grid.front_chart
        if chart is not None:
            pins = tuple(pin for pin in self.view.pins if pin != chart.id)
            self.view = replace(self.view, pins=(*pins, chart.id) if pins == self.view.pins else pins)
            self.post_message(self.Pinned(self.view.pins))
            is_pinned = chart.id in self.view.pins
            self.notify("Pinned: it comes first, and Live shows it." if is_pinned else "No longer pinned.")

    def action_x_axis(self) -> None:
        next_index = X_AXES.index(self.view.x_axis) + 1
        self.view = replace(self.view, x_axis=X_AXES[next_index % len(X_AXES)])

    def _lay_out_charts(self, layout: Layout) -> None:
        self.grid.arrangement = layout
        self.set_class(layout == "one", "-one-chart")
        self.nodes_large = False

    def action_chart_layout(self) -> None:
        next_index = LAYOUTS.index(self.grid.arrangement) + 1
        self._lay_out_charts(LAYOUTS[next_index % len(LAYOUTS)])

    def action_zoom_chart(self) -> None:
        self._lay_out_charts("grid" if self.grid.arrangement == "one" else "one")

    def _series_names(self) -> tuple[str, ...]:
        chart = self.grid.front_chart
        return chart.names if chart is not None else ()

    def action_select_series(self, step: int) -> None:
        names = self._series_names()
        if names:
            selected = self.view.selected
            index = names.index(selected) if selected in names else -1 if step > 0 else 0
            self.view = replace(self.view, selected=names[(index + step) % len(names)])

    def action_toggle_series(self) -> None:
        names = self._series_names()
        name = self.view.selected if self.view.selected in names else (names[0] if names else None)
        if name is not None:
            self.view = replace(self.view, selected=name, hidden=self.view.hidden ^ {name})

    def action_only_series(self) -> None:
        names = self._series_names()
        if self.view.selected in names:
            other_names = frozenset(names) - {self.view.selected}
            hidden = self.view.hidden - set(names)
            is_alone = other_names <= self.view.hidden
            self.view = replace(self.view, hidden=hidden if is_alone else hidden | other_names)

    def action_all_series(self) -> None:
        self.view = replace(self.view, hidden=frozenset())

    # Nodes

    def action_nodes(self) -> None:
        self.nodes_large = not self.nodes_large

    def action_toggle_in_matrix(self, option: str) -> None:
        if option == "over_time":  # history needs the full width
            self.nodes_large = True
        self._reveal_nodes()
        change: dict[str, Any] = {option: not getattr(self.matrix, option)}
        self.matrix = replace(self.matrix, **change)
