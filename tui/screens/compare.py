"""The compare screen: a table with one column per run, and overlaid curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.reactive import var

from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.actions.table import Scope
from tui.analysis.comparison import (
    AXES,
    MEASURES,
    Axis,
    ComparedRun,
    ComparisonRow,
    comparison_rows,
    comparison_table,
    curves,
    curves_table,
    labels,
    measures,
    throughput_unit,
)
from tui.analysis.series import Series
from tui.feeds.comparison import ComparisonFeed, job_before
from tui.screens.base import AppScreen, FeedFactory, OpenPage, Page, PageServices
from tui.screens.charts.builder import METRIC_ID_PREFIX, MIN_RELATIVE_RANGE, ChartData
from tui.screens.charts.controls import ChartControls
from tui.screens.charts.time_row import TimeRow, TimeRowContent
from tui.screens.charts.view import ChartView
from tui.screens.differences import DifferencesPage
from tui.screens.messages import ExportRequested
from tui.tables.column import Span
from tui.tables.comparison import comparison_columns
from tui.text.sanitize import sanitize
from tui.text.times import time_key
from tui.text.units import counted, number, percent
from tui.widgets.charts.spec import ChartSpec
from tui.widgets.charts.ticks import Window
from tui.widgets.row_table import RowTable
from tui.widgets.text_panel import WrappedText

AXIS_LABELS: dict[Axis, str] = {"step": "by step", "elapsed": "since start", "clock": "by clock"}


class ComparedCharts:
    """The charts of several runs on one x axis; caches their curves, because computing them is slow."""

    def __init__(self, runs: Sequence[ComparedRun], axis: Axis) -> None:
        self._runs = runs
        self._axis = axis
        self._curves_by_measure: dict[str, tuple[Series, ...]] = {}

    def curves_of(self, measure: str) -> tuple[Series, ...]:
        if measure not in self._curves_by_measure:
            self._curves_by_measure[measure] = curves(self._runs, measure, self._axis)
        return self._curves_by_measure[measure]

    def charts(self, view: ChartView, baseline: str) -> list[ChartData]:
        """Return a chart for each measure that a run reports, and one for the loss in any case."""
        runs, charts = self._runs, []
        start, end = view.window.bounds(*self.full_range)
        for measure in measures(runs):
            is_metric = measure not in MEASURES
            metrics = [run.progress.metrics[measure] for run in runs if measure in run.progress.metrics]
            lines = tuple(metrics) if is_metric else self.curves_of(measure)
            if not lines and measure != "loss":
                continue
            unit = throughput_unit(runs) if measure == "throughput" else ""
            name = unit or sanitize(measure)
            spec = ChartSpec(
                # A single curve has no legend, so the title names its run.
                title=f"{name} of {lines[0].name}" if len(lines) == 1 else name,
                start=start,
                end=end,
                unit=number,
                min_relative_range=MIN_RELATIVE_RANGE if measure == "throughput" else 0.0,
                x_axis=self._axis,
                end_label="",
                empty_text="no training progress in these logs so far",
                is_logarithmic=view.log_scale,
                smoothing=view.smoothing,
                shows_samples=len(lines) == 1,
                hidden=view.hidden,
                baseline=baseline,
                cursor=view.cursor if view.cursor is not None and start <= view.cursor <= end else None,
            )
            finish = partial(self._with_curves, measure) if is_metric else None
            charts.append(
                ChartData(METRIC_ID_PREFIX + measure if is_metric else measure, lines, spec, unit, finish)
            )
        return charts

    def _with_curves(self, measure: str, chart: ChartData) -> ChartData:
        return replace(chart, series=self.curves_of(measure))

    @cached_property
    def full_range(self) -> tuple[float, float]:
        lines = [line for measure in MEASURES for line in self.curves_of(measure)]
        first = min((line.times[0] for line in lines), default=0.0)
        last = max((line.times[-1] for line in lines), default=1.0)
        return first, max(last, first + 1e-3)


Layout = Literal["both", "charts", "table"]
LAYOUTS: tuple[Layout, ...] = ("both", "charts", "table")


class CompareRunsScreen(ChartControls, AppScreen):
    """Compares several runs; ``make_feed`` creates the feed that reads them."""

    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = "RowTable"
    SCOPES = (Scope.COMPARE,)
    _feed: ComparisonFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (160, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-tall")]

    runs: var[tuple[ComparedRun, ...]] = var((), init=False)
    axis: var[Axis] = var("step", init=False)
    view: var[ChartView] = var(ChartView(Window()), init=False)
    layout_shown: var[Layout] = var("both", init=False)
    baseline_index: var[int] = var(0, init=False)
    """Index in ``runs`` of the run that all other runs are compared with."""
    differing_only: var[bool] = var(False, init=False)

    def __init__(self, jobs: Sequence[TrainingJob], make_feed: FeedFactory) -> None:
        super().__init__(make_feed)
        self.set_reactive(CompareRunsScreen.runs, tuple(ComparedRun(job) for job in jobs))
        self._charts = ComparedCharts(self.runs, self.axis)

    def compose_body(self) -> ComposeResult:
        yield WrappedText(id="problem")
        yield TimeRow(id="time")
        yield self.chart_filter
        with Container(id="runs"):
            yield self.grid
            yield Vertical(self._new_table(), id="finals")

    def on_mount(self) -> None:
        self._show()
        self.run_feed("comparison")

    def receive(self, runs: tuple[ComparedRun, ...]) -> None:
        self.runs = runs

    @property
    def ordered_runs(self) -> tuple[ComparedRun, ...]:
        """The runs in display order, the baseline first."""
        return (*self.runs[self.baseline_index :], *self.runs[: self.baseline_index])

    # Current state

    def watch_runs(self) -> None:
        self._charts = ComparedCharts(self.runs, self.axis)
        self._show()

    def watch_view(self) -> None:
        self._show_header()
        self._show_charts()

    def watch_axis(self) -> None:
        self._charts = ComparedCharts(self.runs, self.axis)
        self.watch_view()

    def watch_differing_only(self) -> None:
        self._show_header()
        self._show_table()

    async def watch_baseline_index(self) -> None:
        """Replace the table, because its columns follow the order of the runs; mount the new table first."""
        old_table, new_table = self.query_one(RowTable), self._new_table()
        had_focus = old_table.has_focus
        old_table.display = False
        await self.query_one("#finals").mount(new_table, before=old_table)
        if had_focus:
            self.set_focus(new_table)
        await old_table.remove()
        self._show()

    def watch_layout_shown(self, layout: Layout) -> None:
        self.update_classes({f"-only-{name}": name == layout for name in LAYOUTS})
        self.take_focus()
        self.refresh_bindings()
        self._show_charts()

    def _new_table(self) -> RowTable[ComparisonRow]:
        return RowTable(comparison_columns(labels(self.ordered_runs)), lambda row: row.id, opens=False)

    def _show(self) -> None:
        if not self.is_mounted:
            return
        self._show_header()
        self._show_problems()
        self._show_charts()
        self._show_table()

    def _show_header(self) -> None:
        if self._pruning:  # the screen was closed before the layout: its children are gone
            return
        runs = self.runs
        facts: list[list[Span]] = []
        rows = comparison_rows(self.ordered_runs)
        differing_text = f"{sum(row.differs for row in rows)} of {counted(len(rows), 'row')}"
        if self.differing_only:
            facts.append([(f"diffs only: {differing_text}", "accent")])
        shown_count = len(self.query_one(RowTable).visible_column_widths) - 2
        if 0 < shown_count < len(runs):
            next_key = self.key_for("compare.next_base")
            facts.append([(f"{shown_count}/{len(runs)} shown, {next_key} for next", "warn")])
        priority_count = 1 + len(facts)
        runs_being_read = [run for run in runs if run.state in ("waiting", "reading")]
        if runs_being_read:
            read_fractions = [run.fraction_read or 0.0 for run in runs_being_read] + [1.0] * (
                len(runs) - len(runs_being_read)
            )
            logs_text = counted(len(runs_being_read), "log")
            facts.append(
                [(f"↻ reading {logs_text}: {percent(sum(read_fractions) / len(read_fractions))}", "accent")]
            )
        facts.append([(AXIS_LABELS[self.axis], "plain")])
        if not self.differing_only:
            facts.append([(f"{differing_text} differ", "muted")])
        self.set_header("Compare", counted(len(runs), "job"), facts, priority_count)

    def _show_problems(self) -> None:
        """List runs that no longer exist, cannot be read completely, or log no progress.

        All other runs are compared anyway.
        """
        problems, retry_key = [], self.key_for("screen.refresh")
        for run, name in zip(self.runs, map(sanitize, labels(self.runs)), strict=True):
            if run.state == "gone":
                problems.append(f"✗ {name} no longer exists (404)")
            elif run.state == "failed":
                problems.append(f"✗ Can't read {name}: {sanitize(run.error)} Press {retry_key} to retry")
            elif run.gap_count:
                problems.append(f"▲ {name}: unreadable parts of its log: {run.gap_count}")
            elif run.state == "read" and not run.has_curves:
                problems.append(f"ℹ {name}: no training progress in its log")
        self.show_text("#problem", "\n".join(problems))

    def _show_charts(self) -> None:
        if self.layout_shown != "table":
            baseline = labels(self.runs)[self.baseline_index]
            self.grid.set_charts(self._charts.charts(self.view, baseline))
            self.query_one(TimeRow).content = TimeRowContent(
                self.view, *self.full_range(), self.axis, sign="┃"
            )

    def _show_table(self) -> None:
        rows = sorted(comparison_rows(self.ordered_runs), key=lambda row: not row.differs)
        differing_rows = [row for row in rows if row.differs]
        self.query_one(RowTable).set_rows(differing_rows if self.differing_only else rows)

    def on_resize(self) -> None:
        """Update the header after the layout, which determines how many columns fit."""
        self.call_after_refresh(self._show_header)

    # Charts

    def full_range(self) -> tuple[float, float]:
        return self._charts.full_range

    @property
    def range_axis(self) -> Axis:
        return self.axis

    def take_focus(self) -> None:
        self.set_focus(self.grid if self.layout_shown == "charts" else self.query_one(RowTable))

    @on(TimeRow.Chosen)
    def _range_chosen(self, message: TimeRow.Chosen) -> None:
        self.show_window(message.window)

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Refuse actions on charts or on the table while they are hidden."""
        hidden_actions = {
            "charts": ("only_differing",),
            "table": ("next_chart", "filter_charts", "cursor_left"),
        }
        return action not in hidden_actions.get(self.layout_shown, ()) and super().check_action(
            action, parameters
        )

    def action_x_axis(self) -> None:
        self.view = replace(self.view, window=Window(), cursor=None)
        self.axis = AXES[(AXES.index(self.axis) + 1) % len(AXES)]

    def action_layout(self) -> None:
        self.layout_shown = LAYOUTS[(LAYOUTS.index(self.layout_shown) + 1) % len(LAYOUTS)]

    def action_next_base(self) -> None:
        self.baseline_index = (self.baseline_index + 1) % max(1, len(self.runs))

    def action_only_differing(self) -> None:
        self.differing_only = not self.differing_only

    def action_code(self) -> None:
        """Open the differences between the baseline and the job beside it, the older job first."""
        jobs = [run.job for run in self.ordered_runs[:2]]
        if len(jobs) == 2:
            older, newer = sorted(jobs, key=lambda job: time_key(job.created_at))
            self.post_message(OpenPage(DifferencesPage(older, newer)))

    def action_export(self) -> None:
        tables = []
        if self.layout_shown != "charts":
            tables.append(comparison_table(self.ordered_runs))
        if self.layout_shown != "table":
            tables.append(curves_table(self.runs, self.axis))
        self.post_message(
            ExportRequested("the comparison", tables, ("compare", *(run.job.id for run in self.runs[:3])))
        )

    def action_back(self) -> None:
        if self.chart_filter.clear_text():
            self.take_focus()
        elif self.view.cursor is not None:
            self.view = replace(self.view, cursor=None)
        else:
            self.leave()


@dataclass(frozen=True, eq=False)
class ComparePage(Page):
    """The page that compares several jobs with the first of them, the baseline."""

    jobs: tuple[TrainingJob, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(job.id for job in self.jobs)

    def open(self, services: PageServices) -> CompareRunsScreen:
        return CompareRunsScreen(
            self.jobs,
            partial(
                ComparisonFeed,
                services.session,
                services.compared_runs,
                self.jobs,
                services.settings.configuration.runs,
            ),
        )


async def comparison_with_previous(job: TrainingJob, services: PageServices) -> ComparePage | None:
    """Return the page that compares a job with the previous job of its project; notify if there is none."""
    try:
        previous_job = await job_before(services.session, job)
    except RequestError as error:
        services.app.notify(str(error), title="Can't compare", severity="error")
        return None
    if previous_job is not None:
        return ComparePage((previous_job, job))
    services.app.notify("No earlier job in this project; mark jobs with space on Home.")
    return None
