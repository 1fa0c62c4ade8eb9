"""The job screen: header, nodes, charts and log of one run; tabs show and hide the same widgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import var
from textual.widgets import Static

from api_client.models import TrainingJob
from tui.actions import Scope
from tui.actions.keymap import bindings_of
from tui.analysis.connection import CHECKPOINTS, LOG, METRICS, STATUS
from tui.analysis.export import table_of_series
from tui.analysis.run.snapshot import RunSnapshot, is_settled
from tui.feeds.run import RunFeed
from tui.feeds.run_log import LogPart
from tui.screens.base import AppScreen, PaletteItem
from tui.screens.job.chart_actions import ChartActions
from tui.screens.job.chart_grid import ChartGrid
from tui.screens.job.chart_view import ChartView, words
from tui.screens.job.charts import ChartBuilder
from tui.screens.job.checkpoint_pane import CheckpointActions, CheckpointPane
from tui.screens.job.details import Details
from tui.screens.job.header import RunHeader
from tui.screens.job.layout import TAB_IDS, JobLayout, TabStrip
from tui.screens.job.log_pane import LogPane
from tui.screens.job.node_tables import NodeTable, matrix_frame, matrix_rows
from tui.screens.job.run_actions import RunActions
from tui.screens.messages import (
    ExportRequested,
    OpenCheckpointRequested,
    RunChecked,
)
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec
from tui.widgets.charts.ticks import Window
from tui.widgets.gpu_matrix import GpuMatrix
from tui.widgets.notice import ConnectionNotice
from tui.widgets.row_table import RowTable
from tui.widgets.status_footer import StatusFooter

TABS = (
    ("live", "Live"),
    ("logs", "Logs"),
    ("metrics", "Metrics"),
    ("checkpoints", "Checkpoints"),
    ("details", "Details"),
)
TAB_SCOPES: dict[str, tuple[Scope, ...]] = {
    "live": (Scope.LOGS, Scope.CHARTS),
    "logs": (Scope.LOGS,),
    "metrics": (Scope.CHARTS, Scope.METRICS),
    "checkpoints": (Scope.CHECKPOINTS,),
}
"""Scopes that are active on a tab, in addition to those active on all tabs."""

DENSE_NODES = 24
"""With more nodes than this, the matrix gets the full width to keep its cells readable."""

MakeFeed = Callable[..., RunFeed]


class JobScreen(ChartActions, CheckpointActions, RunActions, AppScreen):
    """The job screen of a run, live; ``feed_with`` creates the feed that keeps it fresh."""

    CSS_PATH = "job.tcss"
    SCOPES = (Scope.LOGS, Scope.CHARTS, Scope.METRICS, Scope.CHECKPOINTS, Scope.JOB)
    PANES = {Scope.LOGS: LogPane}
    SHOWN_RESOURCES = frozenset({STATUS, LOG, METRICS, CHECKPOINTS})
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(*SCOPES, Scope.SCREEN)
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (72, "-normal"),
        (110, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (22, "-medium"), (34, "-tall")]

    job: TrainingJob
    node: var[str | None] = var(None, init=False)

    @dataclass
    class RunChanged(Message):
        """The feed has a newer snapshot."""

        snapshot: RunSnapshot

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, JobScreen.RunChanged)

    @dataclass
    class LogArrived(Message):
        """The feed has read a part of the log."""

        part: LogPart

    class JobGone(Message):
        """The job no longer exists on the server."""

    def __init__(
        self,
        job: TrainingJob,
        feed_with: MakeFeed,
        *,
        tab: str | None = None,
        layout: JobLayout | None = None,
        remember: Callable[[JobLayout], object] = lambda _layout: None,
    ) -> None:
        super().__init__()
        self._display_options = layout or JobLayout()
        self._remember = remember
        self.job = job
        self.maker = ChartBuilder()
        self.set_reactive(JobScreen.tab, tab or self._display_options.first_tab(job))
        self.set_reactive(JobScreen.memory_in_matrix, self._display_options.memory_in_matrix)
        span = timedelta(seconds=self._display_options.span_s)
        self.set_reactive(JobScreen.view, ChartView(Window(self._display_options.span_s)))
        self._feed = feed_with(
            job,
            publish=lambda snapshot: self.post_message(self.RunChanged(snapshot)),
            on_log=lambda part: self.post_message(self.LogArrived(part)),
            on_gone=lambda: self.post_message(self.JobGone()),
            span=span,
        )

    def compose(self) -> ComposeResult:
        yield RunHeader().data_bind(JobScreen.snapshot, JobScreen.snoozed)
        yield ConnectionNotice().data_bind(JobScreen.connection)
        with Horizontal(id="tab-line"):
            tabs = [(tab, self.key_for(f"job.show_{tab}"), label) for tab, label in TABS]
            yield TabStrip(tabs, id="tabs")
            yield Static(id="span")
        with Horizontal(id="panels"):
            with Vertical(id="nodes"):
                yield GpuMatrix(id="matrix")
                yield NodeTable(id="node-table")
            yield ChartGrid(id="charts")
        yield LogPane(self.job, self._display_options.log, retry=self._feed.retry, id="log")
        yield CheckpointPane(id="checkpoints")
        yield Details(id="details").data_bind(JobScreen.snapshot)
        yield StatusFooter().data_bind(JobScreen.connection)

    def on_mount(self) -> None:
        self._show_span()
        self.watch_tab(self.tab)
        self.run_worker(self._feed.run(), name="run feed", group="feed", exit_on_error=False)

    # Updates from the feed

    @on(RunChanged)
    def _take_snapshot(self, message: RunChanged) -> None:
        self.job = message.snapshot.job
        self.query_one(LogPane).set_origin(message.snapshot.running_since)
        self.snapshot = message.snapshot
        self._keep_layout()
        self.post_message(RunChecked(message.snapshot, settled=is_settled(message.snapshot)))

    def palette_items(self) -> Iterator[PaletteItem]:
        run = self.snapshot
        for checkpoint in (run.checkpoints or ()) if run is not None else ():
            size = bytes_iec(checkpoint.size_bytes) if checkpoint.size_bytes else ""
            of = f"of {sanitize(self.job.name or self.job.id)}"
            facts = (of, sanitize(checkpoint.checkpoint_type or ""), size)
            about = " · ".join(fact for fact in facts if fact)
            wish = OpenCheckpointRequested(self.job, checkpoint)
            yield PaletteItem("checkpoint", sanitize(checkpoint.checkpoint_id), about, wish)

    def _keep_layout(self) -> None:
        """Remember the layout if it has changed; called with every snapshot, about once a second."""
        span_s = self.view.window.span or self._display_options.span_s
        log = self.query_one(LogPane).options
        layout = JobLayout(self.tab, self.job.id, span_s, self.memory_in_matrix, log)
        if layout.as_data() != self._display_options.as_data():
            self._display_options = layout
            self._remember(layout)

    @on(LogPane.NodeWanted)
    def _node_wanted(self, message: LogPane.NodeWanted) -> None:
        self.node = message.node

    @on(LogArrived)
    def _take_log(self, message: LogArrived) -> None:
        self.query_one(LogPane).take(message.part)

    @on(JobGone)
    def _gone(self) -> None:
        self.notify("This job no longer exists. Showing last known data.", severity="warning")

    def watch_snapshot(self, before: RunSnapshot | None, snapshot: RunSnapshot | None) -> None:
        """Update the panels that are visible and whose data changed."""
        if snapshot is None:
            return
        if before is None or before.metrics is not snapshot.metrics or before.findings != snapshot.findings:
            self._show_nodes(snapshot)
        if before is None or before.checkpoints is not snapshot.checkpoints or self.tab == "checkpoints":
            self._show_checkpoints(snapshot)
        self._show_charts(snapshot, at_s=snapshot.at.timestamp())

    def _show_nodes(self, run: RunSnapshot) -> None:
        nodes = run.metrics.nodes if run.metrics else ()
        with_gpus = any(node.gpus for node in nodes)
        matrix = self.query_one("#matrix", GpuMatrix)
        self.set_class(with_gpus, "-gpus")
        self._make_room(len(nodes))
        if with_gpus:
            alone = self.node if self.nodes_large else None
            memory, large = self.memory_in_matrix, self.nodes_large
            rows = matrix_rows(run, memory=memory, worst_first=self.worst_first, node=alone)
            stretch = self.view.window.bounds(*self.maker.reach(run))
            over_time = large and self.node_history
            frame = matrix_frame(run, stretch, memory=memory, over_time=over_time, node=alone)
            matrix.set_data(rows, frame)
            what = "GPU memory" if memory else "GPU use"
            suffix = f", {sanitize(alone)}" if alone else ", last" if run.job.is_finished else ""
            matrix.matrix_title = f"{what}{suffix}"
        self.query_one("#node-table", RowTable).set_rows(nodes)
        self.query_one(LogPane).set_nodes(tuple(node.name for node in nodes))

    def _make_room(self, nodes: int) -> None:
        """Show both node tables if they fit, else only the GPU matrix."""
        self.set_class(nodes > DENSE_NODES, "-dense-nodes")
        self.set_class(2 * (nodes + 1) > self.query_one("#nodes").size.height, "-many-nodes")
        self.query_one(GpuMatrix).fit()

    def on_resize(self) -> None:
        """Fit the node tables after the layout, which determines the space."""
        run = self.snapshot
        if run is not None and run.metrics is not None:
            self.call_after_refresh(self._make_room, len(run.metrics.nodes))

    def _show_charts(self, run: RunSnapshot, at_s: float | None = None) -> None:
        if self.tab in ("live", "metrics"):
            self.query_one(ChartGrid).set_charts(self.maker.charts(run, self.view), at_s=at_s)

    def _show_checkpoints(self, run: RunSnapshot) -> None:
        self.query_one(CheckpointPane).show_run(run)

    # View

    def watch_tab(self, tab: str) -> None:
        for name in TAB_IDS:
            self.set_class(name == tab, f"-tab-{name}")
        self.query_one(TabStrip).active = tab
        self.refresh_bindings()
        self.view = replace(self.view, full_range=tab != "metrics")
        self.focus_tab(tab)
        if self.snapshot is not None:
            self._show_charts(self.snapshot)
            self._show_checkpoints(self.snapshot)
            self.query_one(Details).watch_snapshot(self.snapshot)

    def watch_node(self, node: str | None) -> None:
        """Filter charts and log by the node; None shows all nodes."""
        self.query_one(LogPane).show_node(node)
        self.view = replace(self.view, node=node, selected=None)

    def watch_view(self, before: ChartView, view: ChartView) -> None:
        self._show_span()
        chosen = view.node or view.selected
        self.query_one("#node-table", NodeTable).point_at(chosen)
        if chosen is not None:
            self.query_one(GpuMatrix).point_at(chosen)
        if self.snapshot is not None:
            self._show_charts(self.snapshot)
            if self.nodes_large:
                self._show_nodes(self.snapshot)

    @property
    def run_shown(self) -> RunSnapshot | None:
        """The newest snapshot, or None before the first one."""
        return self.snapshot

    def read_window(self) -> None:
        """Request the samples of the visible time range; the feed reads what is missing."""
        self._feed.set_span(*self.span_to_read())

    def focus_tab(self, tab: str) -> None:
        """Focus the main widget of a tab."""
        metrics = self._nodes_id if self.nodes_large else "#charts"
        focus = {"checkpoints": "#checkpoint-table", "details": "#details", "metrics": metrics}.get(tab)
        if focus is not None:
            self.query_one(focus).focus()
        else:
            self.query_one(LogPane).focus_view()

    def action_pick_node(self) -> None:
        """Move the focus to the nodes, or back."""
        nodes = self.query_one(self._nodes_id)
        if nodes.has_focus and not (self.tab == "metrics" and self.nodes_large):
            self.focus_tab(self.tab)
        else:
            nodes.focus()

    @property
    def _nodes_id(self) -> str:
        """The widget that lists the nodes; the matrix is hidden if there are no GPUs."""
        return "#matrix" if self.has_class("-gpus") else "#node-table"

    def watch_nodes_large(self, large: bool) -> None:
        self.set_class(large, "-nodes-large")
        if self.tab == "metrics":
            self.focus_tab(self.tab)
        if self.snapshot is not None:
            self._show_nodes(self.snapshot)

    def watch_node_history(self) -> None:
        if self.snapshot is not None:
            self._show_nodes(self.snapshot)

    def watch_worst_first(self) -> None:
        if self.snapshot is not None:
            self._show_nodes(self.snapshot)

    def watch_memory_in_matrix(self) -> None:
        if self.snapshot is not None:
            self._show_nodes(self.snapshot)

    def _show_span(self) -> None:
        self.query_one("#span", Static).update(f"charts: {words(self.view)} ")

    @on(TabStrip.Chosen)
    def _tab_chosen(self, message: TabStrip.Chosen) -> None:
        self.show_tab(message.tab_id)

    @on(GpuMatrix.NodeSelected)
    def _node_chosen(self, message: GpuMatrix.NodeSelected) -> None:
        inside = self.nodes_large and self.node is not None
        self.node = None if inside or self.node == message.name else message.name

    @on(RowTable.Selected, "#node-table")
    def _node_row_chosen(self, message: RowTable.Selected) -> None:
        self.node = None if self.node == message.key else message.key

    @on(RowTable.Selected, "#checkpoint-table")
    def _checkpoint_chosen(self) -> None:
        self.action_open_checkpoint()

    # Actions

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes active on this tab, including those active on all tabs."""
        return (*TAB_SCOPES.get(self.tab, ()), Scope.JOB)

    def action_next_node(self) -> None:
        """Show only the next node; after the last, all nodes."""
        self._step_node(1)

    def action_previous_node(self) -> None:
        """Show only the previous node; before the first, all nodes."""
        self._step_node(-1)

    def _step_node(self, by: int) -> None:
        names = self.query_one(LogPane).nodes
        stops: list[str | None] = [None, *names]
        position = stops.index(self.node) if self.node in stops else 0
        self.node = stops[(position + by) % len(stops)]

    def action_export(self) -> None:
        charts = self.query_one(ChartGrid).current_data()
        table = table_of_series("metrics", [(one.title, one.unit, one.x, one.series) for one in charts])
        names = (self.job.name or self.job.id, *(one.id.replace("/", "-") for one in charts[:1]))
        self.post_message(ExportRequested("the charts shown", [table], names))

    def action_refresh(self) -> None:
        self._feed.refresh()

    def action_back(self) -> None:
        """Undo the innermost state (filter, cursor, marks, selected node), else close the screen."""
        if self.query_one(LogPane).leave():
            return
        if self.tab == "live" and self.query_one(self._nodes_id).has_focus:
            self.focus_tab(self.tab)
            return
        if self.tab in ("live", "metrics") and self.leave_charts():
            return
        if self.tab == "checkpoints" and self.checkpoint_pane.clear_marks():
            return
        if self.node is not None:
            self.node = None
        else:
            self.app.pop_screen()
