"""The compare screen: a table with one column per run, and overlaid curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, partialmethod
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.reactive import var

from api_client.errors import RequestError
from api_client.models import QueueContext, TrainingJob
from tui.actions import Scope
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
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.series import Series, next_smoothing
from tui.feeds.comparison import ComparisonFeed, job_before
from tui.screens.base import AppScreen, MakeFeed, OpenPage, Page, PageServices
from tui.screens.charts.builder import LEAST_RANGE, METRIC, ChartData
from tui.screens.charts.filter import ChartFilter
from tui.screens.charts.grid import FAST_CURSOR_CELLS, ChartGrid
from tui.screens.charts.time_row import TimeRow, TimeShown
from tui.screens.charts.view import ChartView, next_length, with_cursor_moved
from tui.screens.differences import DifferencesPage
from tui.screens.messages import ExportRequested
from tui.tables.column import Span
from tui.tables.comparison import comparison_columns
from tui.text.sanitize import sanitize
from tui.text.units import counted, number, percent
from tui.widgets.charts.line_chart import Panned, Pointed, SeriesClicked, Zoomed
from tui.widgets.charts.spec import ChartSpec
from tui.widgets.charts.ticks import Window
from tui.widgets.row_table import RowTable
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText

AXIS_LABELS: dict[Axis, str] = {"step": "by step", "elapsed": "since start", "clock": "by clock"}


Source = tuple[str, str | None, ProgressSnapshot | None, QueueContext | None]
"""Inputs of a run's curves: id, name, progress from the log, and queue context (for the start time)."""


class CurveBuilder:
    """Builds the comparison charts; curves of unchanged runs stay the same objects."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, Axis], tuple[tuple[Source, ...], tuple[Series, ...]]] = {}

    def lines(self, runs: Sequence[ComparedRun], measure: str, axis: Axis) -> tuple[Series, ...]:
        made_of = tuple(
            (one.job.id, one.job.name, one.run.progress, one.run.queue)
            if one.run
            else (one.job.id, one.job.name, None, None)
            for one in runs
        )
        held = self._held.get((measure, axis))
        if held is not None and held[0] == made_of:
            return held[1]
        new = curves(runs, measure, axis)
        old = {line.name: line for line in held[1]} if held is not None else {}
        kept = tuple(old[line.name] if old.get(line.name) == line else line for line in new)
        self._held[measure, axis] = (made_of, kept)
        return kept

    def charts(
        self, runs: Sequence[ComparedRun], view: ChartView, axis: Axis, baseline: str
    ) -> list[ChartData]:
        """Return charts of all measures; only the loss is shown if no run reports it."""
        found = []
        reach = self.reach(runs, axis)
        for measure in measures(runs):
            is_metric = measure not in MEASURES
            metrics = [one.progress.metrics[measure] for one in runs if measure in one.progress.metrics]
            lines = tuple(metrics) if is_metric else self.lines(runs, measure, axis)
            if not lines and measure != "loss":
                continue
            unit = throughput_unit(runs) if measure == "throughput" else ""
            start, end = view.window.bounds(*reach)
            spec = ChartSpec(
                title=_title(unit or sanitize(measure), lines),
                start=start,
                end=end,
                unit=number,
                least_range=LEAST_RANGE if measure == "throughput" else 0.0,
                x_axis=axis,
                end_label="",
                empty_text="no training progress in these logs so far",
                log=view.log,
                smoothing=view.smoothing,
                raw=len(lines) == 1,
                hidden=view.hidden,
                baseline=baseline,
                cursor=view.cursor if view.cursor is not None and start <= view.cursor <= end else None,
            )
            finish = partial(self._finished, runs, measure, axis) if is_metric else None
            found.append(ChartData(METRIC + measure if is_metric else measure, lines, spec, unit, finish))
        return found

    def _finished(self, runs: Sequence[ComparedRun], measure: str, axis: Axis, chart: ChartData) -> ChartData:
        return replace(chart, series=self.lines(runs, measure, axis))

    def reach(self, runs: Sequence[ComparedRun], axis: Axis) -> tuple[float, float]:
        lines = [line for measure in MEASURES for line in self.lines(runs, measure, axis)]
        first = min((line.times[0] for line in lines), default=0.0)
        last = max((line.times[-1] for line in lines), default=1.0)
        return first, max(last, first + 1e-3)


def _title(measure: str, lines: Sequence[Series]) -> str:
    """Return the title of a chart. A single curve has no legend, so the title names its run."""
    return f"{measure} of {lines[0].name}" if len(lines) == 1 else measure


Layout = Literal["both", "charts", "table"]
LAYOUTS: tuple[Layout, ...] = ("both", "charts", "table")
PAN_SHARE = 0.5


class CompareRunsScreen(AppScreen):
    """Comparison of several runs; ``feed_with`` creates the feed that reads them."""

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
    base: var[int] = var(0, init=False)
    differing_only: var[bool] = var(False, init=False)

    def __init__(self, jobs: Sequence[TrainingJob], feed_with: MakeFeed) -> None:
        super().__init__(feed_with)
        self.set_reactive(CompareRunsScreen.runs, tuple(ComparedRun(job) for job in jobs))
        self._maker = CurveBuilder()

    def compose_body(self) -> ComposeResult:
        yield WrappedText(id="problem")
        yield TimeRow(id="time")
        yield ChartFilter()
        with Container(id="runs"):
            yield ChartGrid(id="charts")
            yield Vertical(self._new_table(), id="finals")

    def on_mount(self) -> None:
        self._show()
        self.run_feed("comparison")

    def take(self, runs: tuple[ComparedRun, ...]) -> None:
        self.runs = runs

    @property
    def ordered(self) -> tuple[ComparedRun, ...]:
        """The runs in display order, the base of the comparison first."""
        return (*self.runs[self.base :], *self.runs[: self.base])

    # Current state

    def watch_runs(self) -> None:
        self._show()

    def watch_view(self) -> None:
        self._show_header()
        self._show_charts()

    def watch_axis(self) -> None:
        self.watch_view()

    def watch_differing_only(self) -> None:
        self._show_header()
        self._show_table()

    async def watch_base(self) -> None:
        """Rebuild the table, because its columns follow the order of the runs; there is always one."""
        before, table = self.query_one(RowTable), self._new_table()
        had_focus = before.has_focus
        before.display = False
        await self.query_one("#finals").mount(table, before=before)
        if had_focus:
            self.set_focus(table)
        await before.remove()
        self._show()

    def watch_layout_shown(self, layout: Layout) -> None:
        self.update_classes({f"-only-{name}": name == layout for name in LAYOUTS})
        self.set_focus(self.query_one("#charts" if layout == "charts" else RowTable))
        self.refresh_bindings()
        self._show_charts()

    def _new_table(self) -> RowTable[ComparisonRow]:
        return RowTable(comparison_columns(labels(self.ordered)), lambda row: row.id, opens=False)

    def _show(self) -> None:
        if not self.is_mounted:
            return
        self._show_header()
        self._show_problem()
        self._show_charts()
        self._show_table()

    def _show_header(self) -> None:
        if self._pruning:  # closed before the layout; the parts are gone
            return
        runs = self.runs
        jobs = counted(len(runs), "job")
        facts: list[list[Span]] = [[("‹ ", "muted"), ("Compare ", "key"), (jobs, "strong")]]
        rows = comparison_rows(self.ordered)
        differing = f"{sum(row.differs for row in rows)} of {counted(len(rows), 'row')}"
        if self.differing_only:
            facts.append([(f"diffs only: {differing}", "accent")])
        shown = len(self.query_one(RowTable).columns_shown) - 2
        if 0 < shown < len(runs):
            following = self.key_for("compare.next_base")
            facts.append([(f"{shown}/{len(runs)} shown, {following} next", "warn")])
        priority_count = len(facts)
        reading = [one for one in runs if one.state in ("waiting", "reading")]
        if reading:
            parts = [one.part or 0.0 for one in reading] + [1.0] * (len(runs) - len(reading))
            logs = counted(len(reading), "log")
            facts.append([(f"↻ reading {logs}: {percent(sum(parts) / len(parts))}", "accent")])
        facts.append([(AXIS_LABELS[self.axis], "plain")])
        if not self.differing_only:
            facts.append([(f"{differing} differ", "muted")])
        self.query_one("#header", StatusLine).set_facts(facts, priority_count)

    def _show_problem(self) -> None:
        """List runs that are gone, failed or log no progress; the others are compared anyway."""
        problems, again = [], self.key_for("screen.refresh")
        for one, name in zip(self.runs, labels(self.runs), strict=True):
            if one.state == "gone":
                problems.append(f"✗ {name} no longer exists (404)")
            elif one.state == "failed":
                problems.append(f"✗ Can't read {name}: {sanitize(one.error)} Press {again} to retry")
            elif one.gap_count:
                problems.append(f"▲ {name}: unreadable parts of its log: {one.gap_count}")
            elif one.state == "read" and not one.has_curves:
                problems.append(f"ℹ {name}: no training progress in its log")
        problem = self.query_one("#problem", WrappedText)
        problem.display = bool(problems)
        problem.update("\n".join(problems))

    def _show_charts(self) -> None:
        if self.layout_shown != "table":
            baseline = labels(self.runs)[self.base]
            charts = self._maker.charts(self.runs, self.view, self.axis, baseline)
            self.query_one(ChartGrid).set_charts(charts)
            self.query_one(TimeRow).shown = TimeShown(self.view, *self._reach, self.axis, sign="┃")

    def _show_table(self) -> None:
        rows = sorted(comparison_rows(self.ordered), key=lambda row: not row.differs)
        differing = [row for row in rows if row.differs]
        self.query_one(RowTable).set_rows(differing if self.differing_only else rows)

    def on_resize(self) -> None:
        """Update the header after the layout, which determines how many columns fit."""
        self.call_after_refresh(self._show_header)

    # Mouse on the charts

    @property
    def _reach(self) -> tuple[float, float]:
        return self._maker.reach(self.runs, self.axis)

    @on(Zoomed)
    def _zoomed(self, message: Zoomed) -> None:
        window = self.view.window.zoomed(message.factor, message.around, *self._reach)
        self.view = replace(self.view, window=window)

    @on(Panned)
    def _panned(self, message: Panned) -> None:
        self._pan(message.by)

    @on(Pointed)
    def _pointed(self, message: Pointed) -> None:
        self.view = replace(self.view, cursor=message.x)

    @on(SeriesClicked)
    def _switched(self, message: SeriesClicked) -> None:
        self.view = replace(self.view, hidden=self.view.hidden ^ {message.name})

    @on(TimeRow.Chosen)
    def _range_chosen(self, message: TimeRow.Chosen) -> None:
        self.view = replace(self.view, window=message.window)

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what changes something that is shown."""
        hidden = {"charts": ("only_differing",), "table": ("next_chart", "filter_charts", "cursor_left")}
        return action not in hidden.get(self.layout_shown, ()) and super().check_action(action, parameters)

    def action_x_axis(self) -> None:
        self.view = replace(self.view, window=Window(), cursor=None)
        self.axis = AXES[(AXES.index(self.axis) + 1) % len(AXES)]

    def action_next_chart(self) -> None:
        self.query_one(ChartGrid).next()

    @on(ChartFilter.Changed)
    def _filter(self, message: ChartFilter.Changed) -> None:
        self.query_one(ChartGrid).text = message.value

    @on(ChartFilter.Submitted)
    def _filtered(self) -> None:
        self.set_focus(self.query_one("#charts" if self.layout_shown == "charts" else RowTable))

    def action_filter_charts(self) -> None:
        self.query_one(ChartFilter).open()

    def action_layout(self) -> None:
        self.layout_shown = LAYOUTS[(LAYOUTS.index(self.layout_shown) + 1) % len(LAYOUTS)]

    def action_smoothing(self) -> None:
        self.view = replace(self.view, smoothing=next_smoothing(self.view.smoothing))

    def action_log_scale(self) -> None:
        self.view = replace(self.view, log=not self.view.log)

    def _zoom(self, by: int) -> None:
        self.view = replace(self.view, window=next_length(self.view, by, self._reach, self.axis))

    action_zoom_in = partialmethod(_zoom, 1)
    action_zoom_out = partialmethod(_zoom, -1)

    def _move_cursor(self, cells: int) -> None:
        self.view = with_cursor_moved(self.view, cells, self.query_one(ChartGrid).raster_cells, self._reach)

    action_cursor_left = partialmethod(_move_cursor, -1)
    action_cursor_right = partialmethod(_move_cursor, 1)
    action_cursor_far_left = partialmethod(_move_cursor, -FAST_CURSOR_CELLS)
    action_cursor_far_right = partialmethod(_move_cursor, FAST_CURSOR_CELLS)

    def _pan_share(self, share: float) -> None:
        start, end = self.view.window.bounds(*self._reach)
        self._pan(share * (end - start))

    action_pan_back = partialmethod(_pan_share, -PAN_SHARE)
    action_pan_forward = partialmethod(_pan_share, PAN_SHARE)

    def _pan(self, by: float) -> None:
        self.view = replace(self.view, window=self.view.window.panned(by, *self._reach))

    def action_next_base(self) -> None:
        self.base = (self.base + 1) % max(1, len(self.runs))

    def action_only_differing(self) -> None:
        self.differing_only = not self.differing_only

    def action_code(self) -> None:
        """Open what differs from the baseline to the job beside it."""
        if len(self.ordered) > 1:
            before, after = (one.job for one in self.ordered[:2])
            self.post_message(OpenPage(DifferencesPage(before, after)))

    def action_export(self) -> None:
        tables = []
        if self.layout_shown != "charts":
            tables.append(comparison_table(self.ordered))
        if self.layout_shown != "table":
            tables.append(curves_table(self.runs, self.axis))
        self.post_message(
            ExportRequested("the comparison", tables, ("compare", *(one.job.id for one in self.runs[:3])))
        )

    def action_back(self) -> None:
        if self.query_one(ChartFilter).clear_text():
            self._filtered()
        elif self.view.cursor is not None:
            self.view = replace(self.view, cursor=None)
        else:
            self.leave()


@dataclass(frozen=True, eq=False)
class ComparePage(Page):
    """Several jobs side by side; the first is the baseline."""

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
    """Find the page that compares a job with the previous one of its project."""
    try:
        before = await job_before(services.session, job)
    except RequestError as error:
        services.app.notify(str(error), title="Can't compare", severity="error")
        return None
    if before is not None:
        return ComparePage((before, job))
    services.app.notify("No earlier job in this project; mark jobs with space on Home.")
    return None
