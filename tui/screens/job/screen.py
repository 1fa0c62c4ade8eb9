"""The job screen: header, nodes, charts and log of one run; tabs show and hide the same widgets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.reactive import reactive, var
from textual.timer import Timer
from textual.widget import Widget

from api_client.errors import RequestError
from api_client.models import JobStatus, TrainingJob
from api_client.models.checkpoints import checkpoint_address
from api_client.models.logs import NS_PER_S
from tui.actions.table import JOB_TABS, Scope
from tui.analysis.connection import CHECKPOINTS, LOG, METRICS, STATUS
from tui.analysis.export import table_of_series
from tui.analysis.fleet.batches import Verb
from tui.analysis.logs.not_kept import NotKept
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import is_all_checked
from tui.analysis.series import latest
from tui.analysis.transfers import DownloadRequest
from tui.analysis.why.explain import explained_findings
from tui.feeds.run import RunFeed
from tui.screens import messages
from tui.screens.base import AppScreen, OpenPage, PaletteItem, key_for_widget
from tui.screens.charts.builder import METRIC_ID_PREFIX, step_time_map
from tui.screens.charts.time_row import TimeRow
from tui.screens.job.checkpoint_pane import CheckpointPane
from tui.screens.job.details import Details
from tui.screens.job.header import RunHeader, status_markdown
from tui.screens.job.log_bar import NodeChosen
from tui.screens.job.log_pane import REMEMBERED_OPTIONS, LogPane
from tui.screens.job.metrics_pane import MetricsPane
from tui.screens.job.time_bar import TimeBar
from tui.settings.remembered import JobState, Memory
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, number
from tui.widgets.background import run_in_background
from tui.widgets.charts.ticks import Window
from tui.widgets.connection_notice import ConnectionNotice
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.view import GapRetryRequested, Moved
from tui.widgets.status_footer import StatusFooter
from tui.widgets.status_line import StatusLine

if TYPE_CHECKING:
    from tui.feeds.why import WhyView
    from tui.readers.recorded_runs import RecordedRun

NO_PROBLEMS = "No problems found with this job."


class TabStrip(Widget):
    """Tabs on a single line; Textual's own tabs take two lines."""

    DEFAULT_CSS = """
    TabStrip {
        height: 1;
        width: 1fr;
        color: $text-muted;
        & > .tab-strip--active { color: $primary; text-style: bold underline; }
        & > .tab-strip--key { color: $text-muted; }
    }
    """
    COMPONENT_CLASSES = {"tab-strip--active", "tab-strip--key"}

    active: reactive[str] = reactive("")

    def render(self) -> Text:
        active = self.get_component_rich_style("tab-strip--active", partial=True)
        key_style = self.get_component_rich_style("tab-strip--key", partial=True)
        is_narrow = sum(len(tab) + 5 for tab in JOB_TABS) > self.size.width
        strip = Text(" ", no_wrap=True, overflow="ellipsis", end="")
        for tab in JOB_TABS:
            key = "" if is_narrow else f"{key_for_widget(self, f'job.show_{tab}')} "
            label = (tab.capitalize(), active if tab == self.active else "")
            tab_text = Text.assemble((key, key_style), label, "  " if is_narrow else "   ")
            tab_text.apply_meta({"tab": tab})
            strip.append_text(tab_text)
        strip.right_crop(1)
        return strip

    async def on_click(self, event: events.Click) -> None:
        if tab := event.style.meta.get("tab"):
            await self.run_action(f"screen.show_tab('{tab}')")


TAB_IDS = tuple(JOB_TABS)
_FIRST_TABS: dict[str, str] = {JobStatus.FAILED: "logs", JobStatus.DEPLOY_FAILED: "details"}
"""Failed jobs open on the tab that explains why: the log, or the status history if the job never started."""


def first_tab(remembered: JobState, job: TrainingJob) -> str:
    """Return the tab to open: the remembered tab of the same job, else a tab that suits the job's status."""
    if job.id == remembered.job_id and remembered.tab in TAB_IDS:
        return remembered.tab
    return _FIRST_TABS.get(job.current_status, TAB_IDS[0])


class JobScreen(AppScreen):
    """The job screen of a run, live or recorded; ``make_feed`` creates the feed that reads its data."""

    CSS_PATH = "job.tcss"
    SCOPES = (
        *(Scope.RECORDING, Scope.LOGS, Scope.CHARTS, Scope.METRICS, Scope.CHECKPOINTS),
        *(Scope.STATUS, Scope.JOB),
    )
    PANES = {
        Scope.LOGS: LogPane,
        Scope.CHARTS: MetricsPane,
        Scope.METRICS: MetricsPane,
        Scope.CHECKPOINTS: CheckpointPane,
        Scope.RECORDING: TimeBar,
    }
    SHOWN_RESOURCES = frozenset({STATUS, LOG, METRICS, CHECKPOINTS})
    _feed: RunFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (22, "-medium"), (34, "-tall")]

    job: TrainingJob
    snapshot: var[RunSnapshot | None] = var(None)
    tab: var[str] = var("live", init=False)
    node: var[str | None] = var(None, init=False)

    def __init__(
        self,
        job: TrainingJob,
        make_feed: Callable[..., RunFeed],
        *,
        tab: str | None = None,
        log: LogOptions | None = None,
        memory: Memory | None = None,
        recorded: RecordedRun | None = None,
    ) -> None:
        super().__init__()
        self._memory = memory or Memory()
        self._remembered_layout = self._memory.state.job
        self.job, self.shown_job_id = job, job.id
        self.set_reactive(JobScreen.tab, tab or first_tab(self._memory.state.job, job))
        # set before mounting, because a later change would restyle all widgets
        self.add_class(f"-tab-{self.tab}", update=False)
        self._recorded_run = recorded
        self._feed_with = make_feed
        self.metrics = MetricsPane(
            self._request_samples,
            memory_in_matrix=self._memory.state.job.memory_in_matrix,
            pins=tuple(self._memory.state.pins.get(job.project_id, ())),
            id="panels",
        )
        self.log_pane = LogPane(job, log or LogOptions(), now_s=self._now_s, id="log")
        self.checkpoints = CheckpointPane(id="checkpoints")
        self._newest_snapshot: RunSnapshot | None = None
        """The newest snapshot; not shown while another screen covers this screen."""
        self._sync_timer: Timer | None = None
        self._synced_ns: int | None = None
        """Time of the log's cursor that the readout of the charts was last moved to."""
        self._why_to_reopen: WhyView | None = None
        """The explanation from which the user went to the log; going back opens it again."""
        self._feed = self._new_feed(None)

    def _new_feed(self, span_s: float | None, **options: Any) -> RunFeed:
        if self._recorded_run is not None:
            options["recorded_progress"] = self._recorded_run.progress
            options["metrics"] = self._recorded_run.metrics
        return self._feed_with(
            self.job,
            publish=self.publish,
            on_log=partial(self.log_pane.call_next, self.log_pane.add_part),
            on_gone=partial(
                self.notify, "This job no longer exists. Showing last known data.", severity="warning"
            ),
            span=None if span_s is None else timedelta(seconds=span_s),
            **options,
        )

    def compose(self) -> ComposeResult:
        yield RunHeader().data_bind(JobScreen.snapshot, JobScreen.snoozed, JobScreen.planned_stops)
        yield ConnectionNotice().data_bind(JobScreen.connection)
        yield TabStrip(id="tabs")
        yield TimeRow(id="time")
        yield self.metrics.data_bind(JobScreen.snapshot)
        yield StatusLine(id="moment")
        yield Details(id="details").data_bind(JobScreen.snapshot)  # in the space above the log
        yield self.log_pane
        yield self.checkpoints
        if self._recorded_run is not None:
            yield TimeBar(self._recorded_run, id="time-bar")
        yield StatusFooter().data_bind(JobScreen.connection)

    def on_mount(self) -> None:
        for attribute in ("view", "snapshot"):
            self.watch(self.metrics, attribute, self._show_time_range, init=False)
        self.watch(self.metrics.grid, "counts", self._show_time_range, init=False)
        for attribute in ("nodes", "is_searching"):
            self.watch(self.log_pane, attribute, self._show_hints, init=False)
        self.watch_tab(self.tab)
        self.run_feed("run feed")

    # Updates from the feed

    def receive(self, snapshot: RunSnapshot) -> None:
        self.job = snapshot.job
        self._newest_snapshot = snapshot
        if self._recorded_run is not None and self.metrics.view.window.span is None:
            self._recorded_run.keep_metrics(snapshot)
        if not self.is_covered:
            self._show(snapshot)
        self.post_message(messages.RunChecked(snapshot, all_checked=is_all_checked(snapshot)))

    def on_screen_resume(self) -> None:
        if self._newest_snapshot is not None and self._newest_snapshot is not self.snapshot:
            self._show(self._newest_snapshot)

    def _show(self, snapshot: RunSnapshot) -> None:
        self.log_pane.set_origin(snapshot.running_since)
        self.snapshot = snapshot
        self._remember_layout()

    def _request_samples(self, span: timedelta | None, visible: timedelta | None) -> None:
        self._feed.set_span(span, visible)
        self._show_time_range()

    def _now_s(self) -> float:
        return time.time() if self._recorded_run is None else self._recorded_run.at.timestamp()

    def palette_items(self) -> Iterator[PaletteItem]:
        run = self._newest_snapshot
        progress = run.progress if run is not None else None
        for name, series in progress.metrics.items() if progress is not None else ():
            on_choose = partial(self._show_metric, name)
            yield PaletteItem("metric", sanitize(name), number(latest(series)), on_choose)
        for checkpoint in (run.checkpoints or ()) if run is not None else ():
            size = bytes_iec(checkpoint.size_bytes) if checkpoint.size_bytes else ""
            job_text = f"of {sanitize(self.job.name or self.job.id)}"
            facts = (job_text, sanitize(checkpoint.checkpoint_type or ""), size)
            description = " · ".join(fact for fact in facts if fact)
            on_choose = partial(self.checkpoints.open_files, checkpoint)
            yield PaletteItem("checkpoint", sanitize(checkpoint.checkpoint_id), description, on_choose)

    def _show_metric(self, name: str) -> None:
        self.tab = "metrics"
        self.metrics.show_chart(METRIC_ID_PREFIX + name)

    def _remember_layout(self) -> None:
        """Remember the layout if it has changed; called with every snapshot, about once a second."""
        log_options = self.log_pane.options
        layout = JobState(
            tab=self.tab,
            job_id=self.job.id,
            memory_in_matrix=self.metrics.matrix.memory,
            time=log_options.time,
            **{name: getattr(log_options, name) for name in REMEMBERED_OPTIONS},
        )
        if layout != self._remembered_layout:  # the memory may have the layout of another job screen
            self._remembered_layout = layout
            self._memory.put(job=layout)

    @on(TimeBar.SeekRequested)
    def _read_recorded_time(self) -> None:
        """Read a recording at another time; until its data arrives, the screen shows the previous time."""
        if self._recorded_run is not None:
            self.workers.cancel_group(self, "feed")
            self.job = self._recorded_run.job
            self._feed = self._new_feed(self.metrics.view.window.span, findings=())
            self.run_feed("run feed")

    def watch_snapshot(self, previous: RunSnapshot | None, snapshot: RunSnapshot | None) -> None:
        """Update the panels that are visible and whose data changed."""
        if snapshot is None:
            return
        self._show_hints()
        nodes = snapshot.metrics.nodes if snapshot.metrics else ()
        self.log_pane.set_nodes([node.name for node in nodes])
        if previous is None or previous.checkpoints is not snapshot.checkpoints or self.tab == "checkpoints":
            self.checkpoints.show_run(snapshot)

    # View

    def watch_tab(self, tab: str) -> None:
        self._why_to_reopen = None
        self.update_classes({f"-tab-{name}": name == tab for name in JOB_TABS})
        self.query_one(TabStrip).active = tab
        self.refresh_bindings()
        self._show_hints()
        self.metrics.show_tab(tab)
        self._sync_readout()
        self.focus_tab(tab)
        if self.snapshot is not None:
            self.checkpoints.show_run(self.snapshot)
            self.query_one(Details).watch_snapshot(self.snapshot)

    def watch_node(self, node: str | None) -> None:
        self.log_pane.show_node(node)
        self.metrics.show_node(node)

    def focus_tab(self, tab: str) -> None:
        match tab:
            case "metrics":
                self.metrics.take_focus()
            case "checkpoints" | "details":
                self.set_focus(self.query_one("#checkpoint-table" if tab == "checkpoints" else "#details"))
            case _:
                self.log_pane.focus_view()

    def _show_hints(self) -> None:
        log, has_job_ended = self.log_pane, self.has_job_ended
        has_checkpoints = self.snapshot is not None and bool(self.snapshot.checkpoints)
        self.hide_hints(
            why=not self._is_explainable,
            show_logs=self.tab == "logs",
            deploy=not has_checkpoints,
            open_checkpoint=not has_checkpoints,
            download_checkpoint=not has_checkpoints,
            compare_checkpoints=not has_checkpoints,
            stop_job=has_job_ended,
            recreate_job=not has_job_ended,
            resume=not has_job_ended or not has_checkpoints,
            toggle_follow=has_job_ended,
            next_match=not log.is_searching,
            next_node=len(log.nodes) < 2 or self.tab in ("checkpoints", "details"),
        )

    # Time axis

    def _show_time_range(self) -> None:
        """Update the time row and the log's range; on Metrics, also the log line at the readout."""
        self.query_one(TimeRow).content = self.metrics.time_row_content()
        log = self.log_pane
        log.show_range(*self.metrics.log_range)
        if self.tab == "metrics":
            shown_count, chart_count = self.metrics.grid.counts
            facts = (
                [[(f"{shown_count} of {chart_count} charts", "muted")]] if shown_count < chart_count else []
            )
            self.query_one("#moment", StatusLine).set_facts([*facts, log.cursor_line_spans()])

    @on(TimeRow.Chosen)
    def _range_chosen(self, message: TimeRow.Chosen) -> None:
        self.metrics.show_window(message.window)

    @on(LogPane.LengthRequested)
    def _length_requested(self, message: LogPane.LengthRequested) -> None:
        self.metrics.cycle_length(message.step)

    @on(LogPane.TimeRequested)
    def _go_to_time(self, message: LogPane.TimeRequested) -> None:
        self.metrics.include_time(message.time_ns / NS_PER_S)
        self.log_pane.show_time(message.time_ns)

    @on(GapRetryRequested)
    def _gap_retry_requested(self, message: GapRetryRequested) -> None:
        self.notify("Reading older lines…" if isinstance(message.gap, NotKept) else "Retrying the gap…")
        run_in_background(self, partial(self._read_gap, message), "gap", exclusive=True)

    async def _read_gap(self, message: GapRetryRequested) -> None:
        try:
            await self._feed.retry(message.gap, message.from_ns)
        except RequestError as error:
            self.notify(str(error), title="Still missing", severity="warning")

    @on(Moved)
    def _log_cursor_moved(self) -> None:
        if self._sync_timer is None:
            self._sync_timer = self.set_timer(0.1, self._sync_readout)

    def _sync_readout(self) -> None:
        """Move the readout to the time of the log's cursor, unless the readout has just moved that cursor."""
        self._sync_timer = None
        chosen_ns = self.log_pane.chosen_ns
        if chosen_ns != self._synced_ns:
            self._synced_ns = chosen_ns
            self.metrics.follow_log(None if chosen_ns is None else chosen_ns / NS_PER_S)

    def action_show_tab(self, tab: str) -> None:
        if tab == self.tab:
            self.focus_tab(tab)
        else:
            self.tab = tab

    @on(NodeChosen)
    def _node_chosen(self, message: NodeChosen) -> None:
        self.node = message.node

    @on(MetricsPane.ReadoutMoved)
    def _show_log_at(self, message: MetricsPane.ReadoutMoved) -> None:
        log = self.log_pane
        log.show_time(int(message.at_s * NS_PER_S))
        self._synced_ns = log.chosen_ns

    @on(MetricsPane.Pinned)
    def _pinned(self, message: MetricsPane.Pinned) -> None:
        pins = {**self._memory.state.pins, self.job.project_id: list(message.pins)}
        self._memory.put(pins=pins)

    @on(MetricsPane.PickingEnded)
    def _picking_ended(self) -> None:
        self.focus_tab(self.tab)

    # Actions

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes of the visible tab, and the scopes that are active on all tabs."""
        recording_scopes = (Scope.RECORDING,) if self._recorded_run is not None else ()
        return (*recording_scopes, Scope.JOB, *JOB_TABS[self.tab])

    def action_step_tab(self, step: int) -> None:
        self.action_show_tab(TAB_IDS[(TAB_IDS.index(self.tab) + step) % len(TAB_IDS)])

    def action_step_node(self, step: int) -> None:
        node_names = self.log_pane.nodes
        choices: list[str | None] = [None, *node_names]  # None shows all nodes
        index = choices.index(self.node) if self.node in choices else 0
        self.node = choices[(index + step) % len(choices)]
        if len(choices) < 3:
            self.notify("The job has only one node." if node_names else "No nodes yet.")
        elif self.tab in ("checkpoints", "details"):
            self.notify(f"Log and charts show {sanitize(self.node) if self.node else 'all nodes'}.")

    def action_export(self) -> None:
        charts = self.metrics.shown_samples()
        exported_charts = [
            (chart.spec.title, chart.unit, chart.spec.x_axis, chart.series) for chart in charts
        ]
        time_map = step_time_map(self.snapshot)
        table = table_of_series("metrics", exported_charts, time_map.time, time_map.last_step_at)
        name_parts = (self.job.name or self.job.id, *(chart.id.replace("/", "-") for chart in charts[:1]))
        self.post_message(messages.ExportRequested("the charts shown", [table], name_parts))

    def action_deploy(self) -> None:
        from tui.screens.deploy.screen import DeployPage

        names = self.checkpoints.names_to_deploy if self.tab == "checkpoints" else ()
        self.post_message(OpenPage(DeployPage(self.job, names, self.snapshot)))

    def action_open_cache(self) -> None:
        from tui.screens.cache import CachePage

        self.post_message(OpenPage(CachePage(self.job.project_id, self.job.project_name)))

    def action_download_source(self) -> None:
        self.post_message(messages.DownloadRequested(DownloadRequest(self.job, archive=True)))

    def action_compare(self) -> None:
        from tui.screens.compare import comparison_with_previous

        self.post_message(OpenPage(partial(comparison_with_previous, self.job)))

    def action_change_job(self, verb: str) -> None:
        self.post_message(messages.BatchRequested(Verb(verb), [self.job], self.snapshot))

    def action_why(self, view: WhyView | None = None) -> None:
        if self.snapshot is not None and self._is_explainable:
            from tui.screens.why import WhyPage

            page = WhyPage(self.snapshot, lambda: self._newest_snapshot, self._show_log_from, view)
            self.post_message(OpenPage(page))
        else:
            self.notify(NO_PROBLEMS)

    def _show_log_from(self, begin: datetime, view: WhyView) -> None:
        self.action_show_tab("logs")
        self._go_to_time(LogPane.TimeRequested(int(begin.timestamp() * NS_PER_S)))
        self._why_to_reopen = view

    def action_resume(self) -> None:
        if self.snapshot is None:
            self.notify("The job is still being read.")
        elif obstacle := messages.resume_obstacle(self.snapshot):
            self.notify(obstacle)
        else:
            self.post_message(messages.ResumeRequested(self.job))

    @property
    def _is_explainable(self) -> bool:
        return self.snapshot is not None and bool(explained_findings(self.snapshot))

    def action_snooze(self) -> None:
        findings = self.snapshot.findings if self.snapshot is not None else ()
        if findings:
            self.post_message(messages.SnoozeRequested(self.job, findings))
        else:
            self.notify(NO_PROBLEMS)

    def action_copy_id(self) -> None:
        checkpoint = self.checkpoints.chosen_checkpoint if self.tab == "checkpoints" else None
        address = checkpoint_address(self.job, checkpoint.name) if checkpoint is not None else ""
        noun = "checkpoint address" if address else "job id"
        self.post_message(messages.CopyRequested(address or self.job.id, noun))

    def action_copy_status(self) -> None:
        if self.snapshot is not None:
            text = status_markdown(self.snapshot)
            self.post_message(messages.CopyRequested(text, "status", keeps_line_breaks=True))

    def action_back(self) -> None:
        """Reset the filter, else cursor, marks or selected node; if none is set, go back to Why, or close."""
        if self.log_pane.step_back():
            return
        if self.tab == "live" and self.metrics.picks_node:
            self.focus_tab(self.tab)
            return
        if self.tab in ("live", "metrics") and self.metrics.step_back():
            return
        if self.tab == "checkpoints" and self.checkpoints.clear_marks():
            return
        if self.tab == "logs" and self.metrics.view.window != Window():
            self.metrics.show_window(Window())
        elif self.node is not None:
            self.node = None
        else:
            why_view, self._why_to_reopen = self._why_to_reopen, None
            if why_view is not None and self._is_explainable:
                self.action_why(why_view)
            else:
                self.leave()
