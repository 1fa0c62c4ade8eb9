"""Charts as data: what a chart draws, and the same samples for export."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from math import ceil, floor, inf, isfinite, log2, nan
from typing import NamedTuple, TypeVar

from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.progress.metrics import grouped, headline_metrics
from tui.analysis.progress.snapshot import ProgressSnapshot, over_steps
from tui.analysis.run.finding import SIGNS
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import EMPTY, Series, extent
from tui.screens.charts.view import ChartView, StepTimeMap
from tui.text.sanitize import sanitize
from tui.text.units import BYTES_PER_MIB, bytes_iec, cores, is_slow, number, percent, significant
from tui.widgets.charts.spec import ChartSpec, Mark, Tone

Subject = TypeVar("Subject")
Result = TypeVar("Result")


def cached_by(
    depends_on: Callable[[Subject], object],
) -> Callable[[Callable[[Subject], Result]], Callable[[Subject], Result]]:
    """Cache the last result of a function while ``depends_on`` of its argument stays equal.

    For slow functions that are called with every snapshot, about once a second.
    """

    def decorate(function: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
        last: list[tuple[object, Result]] = []

        @wraps(function)
        def cached(subject: Subject) -> Result:
            key = depends_on(subject)
            if not last or last[0][0] != key:
                last[:] = [(key, function(subject))]
            return last[0][1]

        return cached

    return decorate


@dataclass(frozen=True, slots=True)
class ChartData:
    """A chart: its samples, drawing options, and the unit of its values ("fraction", "bytes", "tok/s" …)."""

    id: str
    series: tuple[Series, ...]
    spec: ChartSpec
    unit: str = ""
    finish: Callable[[ChartData], ChartData] | None = None
    """Completes the data when the chart is drawn; too slow to do for charts that are not shown."""
    keeps_place: bool = False
    """True for the loss or reward and for pinned charts, which stay in front even if they are flat."""

    @property
    def finished(self) -> ChartData:
        return self if self.finish is None else replace(self.finish(self), finish=None)

    def matches(self, text: str) -> bool:
        """Return True if the name of the chart has all words of a text."""
        name = f"{self.id} {self.spec.title}".lower()
        return all(word in name for word in text.lower().split())

    @property
    def has_data(self) -> bool:
        return any(series.values for series in self.series)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(series.name for series in self.series)


METRIC = "metric/"
"""Prefix of the chart ids of a trainer's metrics; the metric's name follows."""


def is_flat(chart: ChartData) -> bool:
    """Return True if all values, of all nodes, are within 2 %, so that the title is informative enough.

    Where the axis fits the curve, such as a loss, small changes matter: it is flat only if it is constant.
    """
    spec = chart.spec
    # ignore the start of a run, when all values change
    begin, end = spec.start + (spec.end - spec.start) / 5, spec.end
    if chart.finish is not None:
        begin, end = -inf, inf  # its samples have times, while its axis has steps
    values = extent((series for series in chart.series if series.name not in spec.hidden), begin, end)
    share = 0.02 if spec.min_relative_range or spec.y_min is not None else 0.0
    return not chart.keeps_place and (values is None or values[1] - values[0] <= share * abs(values[1]))


def visible_part(chart: ChartData) -> ChartData:
    """Return the chart with the samples within its range only, and without hidden series."""
    start, end = chart.spec.start, chart.spec.end
    kept = []
    for series in chart.series:
        if series.name in chart.spec.hidden:
            continue
        first, last = bisect_left(series.times, start), bisect_right(series.times, end)
        kept.append(Series(series.name, series.times[first:last], series.values[first:last]))
    return replace(chart, series=tuple(kept))


def one_series_each(chart: ChartData) -> list[ChartData]:
    """Split a chart into one chart per visible series, all on the same scale."""
    shown = [series for series in chart.series if series.name not in chart.spec.hidden]
    value_range = extent(shown, chart.spec.start, chart.spec.end)
    low, high = value_range if value_range is not None else (None, None)
    if len(shown) < 2 or low == high:
        low = high = None
    spec = chart.spec
    return [
        ChartData(
            f"{chart.id}/{series.name}",
            (series,),
            replace(
                spec,
                title=sanitize(series.name),
                y_min=spec.y_min if spec.y_min is not None or spec.log else low,
                y_max=spec.y_max if spec.y_max is not None else high,
                selected=None,
            ),
            chart.unit,
        )
        for series in shown
    ]


LEAST_RANGE = 0.25
"""Minimum span of a value axis relative to the values; not for losses, whose small changes matter."""

_END_STEPS_PER_LENGTH = 120
"""Steps per length in which a following time range moves, because each step redraws the charts."""

_SIGNS: dict[str, tuple[str, Tone]] = {
    "checkpoint": ("◆", "good"),
    "restart": ("↻", "caution"),
    "error": ("✗", "bad"),
}


def run_charts(run: RunSnapshot, view: ChartView) -> list[ChartData]:
    """Return the charts of a run: usually the loss, then GPU use and memory, then the others."""
    start, end = time_range(run, view)
    spec = ChartSpec(
        start=start,
        end=end,
        x_axis="relative" if view.x_axis == "step" else view.x_axis,
        origin=reach(run)[0],
        end_label="end" if run.job.is_finished else "now",
        smoothing=view.smoothing,
        log=view.log,
        marks=event_marks(run),
        cursor=view.cursor if view.cursor is not None and start <= view.cursor <= end else None,
        hidden=view.hidden,
        selected=view.selected,
        emphasis=frozenset(finding.node for finding in run.findings if finding.node is not None),
        empty_text="no data" if run.metrics_at else "reading…",
    )
    if spec.x_axis == "relative" and view.window.end is not None:
        spec = replace(spec, x_axis="clock")  # a chart of the past has no "now"
    curves = [] if run.progress is None else _progress_charts(run, run.progress, spec, view)
    metrics = [chart for chart in curves if chart.id.startswith(METRIC)]
    curves = curves[: len(curves) - len(metrics)]
    machines = [_banded(chart, view) for chart in _machine_charts(run, spec, view.node)]
    charts = [*curves[:1], *machines[:2], *curves[1:], *machines[2:], *metrics]
    front_positions = _front_positions(run.progress, view)
    charts = [replace(chart, keeps_place=chart.id in front_positions) for chart in charts]
    return sorted(charts, key=lambda chart: front_positions.get(chart.id, len(front_positions)))


def reach(run: RunSnapshot) -> tuple[float, float]:
    """Return the limits of time ranges: the run's start and its current time or end (epoch seconds)."""
    ended = run.job.updated_at if run.job.is_finished else None
    last = (ended or run.server_now).timestamp()
    first = run.running_since or run.job.created_at
    return min(first.timestamp() if first else last - 1, last - 1), last


def time_range(run: RunSnapshot, view: ChartView) -> tuple[float, float]:
    """Return the visible time range (epoch seconds)."""
    first, last = reach(run)
    start, end = view.window.bounds(first, last)
    if view.window.follows:
        span = view.window.span
        end = _rounded_up(end, end - start if span is None or start <= first else span)
        if span is not None and start > first:
            # Between its steps, both edges stay fixed, or every update would redraw all charts.
            start = end - span
    return start, end


def step_clock(run: RunSnapshot | None) -> StepTimeMap:
    return StepTimeMap(run.progress.step_series if run is not None and run.progress is not None else EMPTY)


def _progress_charts(
    run: RunSnapshot, progress: ProgressSnapshot, spec: ChartSpec, view: ChartView
) -> list[ChartData]:
    """Return the charts of values in the log: loss, throughput, metrics."""
    # Logs are read from their end: until all is read, the curves lack the run's first steps.
    unread = "" if run.log_read else ", still reading"
    speed, speed_unit = progress.throughput_series
    if speed is progress.rate_series and is_slow(
        progress.rate_steps_per_s or inf
    ):  # seconds per step, as in the header
        values = tuple(1 / rate if rate > 0 else nan for rate in speed.values)
        speed, speed_unit = replace(speed, values=values), "s/it"
    note = "" if progress.loss is None or isfinite(progress.loss) else f"now {progress.loss}"
    by_step = view.x_axis == "step" and bool(progress.step_series.values)
    spec = _by_step(spec, progress) if by_step else spec
    loss_spec = replace(spec, unit=number, has_main_line=True)
    rate_spec = replace(spec, unit=number, min_relative_range=LEAST_RANGE)
    losses = (("loss", progress.loss_series), ("eval loss", progress.eval_loss_series))
    rate = ("learning rate", progress.learning_rate_series)
    curves: list[tuple[str, str, tuple[tuple[str, Series], ...], ChartSpec, str]] = [
        ("loss", "loss", losses, replace(loss_spec, note=note), ""),
        ("throughput", speed_unit, ((speed_unit, speed),), replace(rate_spec, unit=_rate_text), speed_unit),
        ("grad-norm", "grad norm", (("grad norm", progress.grad_norm_series),), rate_spec, ""),
        ("learning-rate", "learning rate", (rate,), rate_spec, ""),
    ]
    front_positions = _front_positions(progress, view)
    for name in grouped(progress.metrics):
        if view.every_metric or METRIC + name in front_positions:
            title = sanitize(name)
            curves.append((METRIC + name, title, ((title, progress.metrics[name]),), loss_spec, ""))
    finish = partial(_over_steps, progress=progress, whole=run.log_read) if by_step else None
    return [
        ChartData(
            chart_id,
            tuple(replace(series, name=name) for name, series in lines if series.values),
            replace(own, title=f"{title}{unread}"),
            unit,
            finish,
        )
        for chart_id, title, lines, own, unit in curves
        if any(series.values for _, series in lines)
    ]


def _by_step(spec: ChartSpec, progress: ProgressSnapshot) -> ChartSpec:
    clock = StepTimeMap(progress.step_series)
    start, end = clock.step(spec.start), clock.step(spec.end)
    return replace(
        spec,
        x_axis="step",
        start=min(start, end - 1),
        end=end,
        cursor=None if spec.cursor is None else clock.step(spec.cursor),
        marks=_marks_by_step(_TimedMarks(spec.marks, progress.step_series)),
    )


class _TimedMarks(NamedTuple):
    marks: tuple[Mark, ...]
    steps: Series


def _identity(timed: _TimedMarks) -> _TimedMarks:
    return timed


@cached_by(_identity)
def _marks_by_step(timed: _TimedMarks) -> tuple[Mark, ...]:
    clock = StepTimeMap(timed.steps)
    return tuple(replace(mark, at=clock.step(mark.at)) for mark in timed.marks)


def _over_steps(chart: ChartData, *, progress: ProgressSnapshot, whole: bool) -> ChartData:
    lines = tuple(over_steps(series, progress, whole=whole) for series in chart.series)
    return replace(chart, series=lines)


def _machine_charts(run: RunSnapshot, spec: ChartSpec, node: str | None) -> list[ChartData]:
    """Return the charts of the nodes' hardware metrics: GPUs, CPU, memory, disk."""
    nodes = run.metrics.nodes if run.metrics else ()
    spec = replace(spec, y_min=0.0)
    share = replace(spec, unit=percent, y_max=1.0, log=False)
    in_bytes = replace(spec, unit=bytes_iec, tick_base=2)
    limit_mib = run.job.instance_type.gpu_memory_limit_mib
    suffix = "" if node is None else f", {sanitize(node)}"
    use = replace(share, title=f"GPU use{suffix}")
    memory = replace(in_bytes, title=f"GPU memory{suffix}")
    if limit_mib:
        memory = replace(memory, y_max=float(limit_mib * BYTES_PER_MIB), log=False)
    if node is None:
        use_lines = _by_node(nodes, lambda machine: machine.mean_utilization)
        memory_lines = _by_node(nodes, lambda machine: machine.mean_memory)
    else:
        use_lines = _by_gpu(nodes, node, lambda machine: machine.gpu_utilization)
        memory_lines = _by_gpu(nodes, node, lambda machine: machine.gpu_memory)
    chosen = [machine for machine in nodes if node is None or machine.name == node]
    if node is not None:  # keep the color that the node has among all nodes
        place = next((place for place, machine in enumerate(nodes) if machine.name == node), 0)
        spec, in_bytes = replace(spec, first_color=place), replace(in_bytes, first_color=place)
    volumes = (
        ("cpu", "CPU cores", replace(spec, unit=cores), lambda machine: machine.cpu, "cores"),
        ("memory", "memory", in_bytes, lambda machine: machine.cpu_memory, "bytes"),
        ("disk", "disk", in_bytes, lambda machine: machine.disk_usage, "bytes"),
    )
    charts = [
        ChartData("util", use_lines, use, "fraction"),
        ChartData("gpu-memory", memory_lines, memory, "bytes"),
        *(
            ChartData(name, _by_node(chosen, series), replace(own, title=title), unit)
            for name, title, own, series, unit in volumes
        ),
    ]
    if run.metrics and run.metrics.cache_usage.values:
        line = replace(run.metrics.cache_usage, name="cache")
        charts.append(ChartData("cache", (line,), replace(in_bytes, title="cache", first_color=0), "bytes"))
    return charts


def _by_node(nodes: Sequence[NodeSnapshot], series: Callable[[NodeSnapshot], Series]) -> tuple[Series, ...]:
    return tuple(replace(series(node), name=sanitize(node.name)) for node in nodes)


def _by_gpu(
    nodes: Sequence[NodeSnapshot], name: str, series: Callable[[NodeSnapshot], tuple[Series, ...]]
) -> tuple[Series, ...]:
    return tuple(
        replace(line, name=f"gpu {sanitize(gpu)}")
        for node in nodes
        if node.name == name
        for gpu, line in zip(node.gpus, series(node), strict=False)
    )


def _front_positions(progress: ProgressSnapshot | None, view: ChartView) -> dict[str, int]:
    """Return the positions of the first charts: the reward or else the loss, then the pinned ones."""
    headlines = headline_metrics(progress.metrics) if progress is not None else []
    lead, *others = [METRIC + name for name in headlines] or ["loss"]
    chart_ids = (lead, *view.pins, *others)
    return {chart_id: position for position, chart_id in enumerate(dict.fromkeys(chart_ids))}


def _banded(chart: ChartData, view: ChartView) -> ChartData:
    """Draw nodes or GPUs as a band: their lines would cover each other."""
    return replace(chart, spec=replace(chart.spec, band=len(chart.series) > 1 and not view.lines))


def _rounded_up(end: float, length: float) -> float:
    """Round up the end of a time range to a power-of-two step, stable against small changes of its length."""
    step = 2.0 ** floor(log2(max(length, 1.0) / _END_STEPS_PER_LENGTH))
    return ceil(end / step) * step


def _events_of(run: RunSnapshot) -> tuple[object, ...]:
    logged = run.progress and (run.progress.saves, run.progress.restarts, run.progress.errors.kept)
    return run.status_history, run.checkpoints, logged, run.findings


@cached_by(_events_of)
def event_marks(run: RunSnapshot) -> tuple[Mark, ...]:
    """Return the marks of events and of the beginnings of problems; text from the server is sanitized."""
    marks = [
        Mark(event.at_s, *_SIGNS[event.kind], sanitize(event.text))
        for event in run.events
        if event.kind in _SIGNS
    ]
    for finding in run.findings:
        if finding.since is not None and finding.severity != "info":
            tone: Tone = "bad" if finding.severity == "critical" else "caution"
            marks.append(
                Mark(finding.since.timestamp(), SIGNS[finding.severity], tone, sanitize(finding.short))
            )
    return tuple(marks)


def _rate_text(value: float) -> str:
    """Format a rate: with thousands separators, or with three significant digits below 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else significant(value)
