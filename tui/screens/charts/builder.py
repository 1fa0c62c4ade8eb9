"""Charts as data: their samples and drawing options, for the screen and for export."""

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
    """Return a decorator that caches the last result while ``depends_on(argument)`` stays equal.

    Meant for slow functions that are called with every snapshot, about once a second.
    """

    def decorate(function: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
        key_and_result: list[tuple[object, Result]] = []

        @wraps(function)
        def cached(subject: Subject) -> Result:
            key = depends_on(subject)
            if not key_and_result or key_and_result[0][0] != key:
                key_and_result[:] = [(key, function(subject))]
            return key_and_result[0][1]

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
    """Completes the data once the chart is to be drawn; too slow to call for charts that are not shown."""
    stays_in_front: bool = False
    """True for the loss or reward and for pinned charts, which stay in front even if they are flat."""

    @property
    def finished(self) -> ChartData:
        """The chart with complete data, ready to be drawn."""
        return self if self.finish is None else replace(self.finish(self), finish=None)

    def matches(self, text: str) -> bool:
        """Return True if the name of the chart contains all words of a text."""
        name = f"{self.id} {self.spec.title}".lower()
        return all(word in name for word in text.lower().split())

    @property
    def has_data(self) -> bool:
        return any(series.values for series in self.series)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(series.name for series in self.series)


METRIC_ID_PREFIX = "metric/"
"""Prefix of the chart ids of a trainer's metrics; the metric's name follows."""


def is_flat(chart: ChartData) -> bool:
    """Return True if all visible values are within 2 % of each other, so that a low chart is enough.

    On an axis without a fixed or minimum range, such as that of the loss, small changes matter: such a chart
    is flat only if all values are equal.
    """
    spec = chart.spec
    # ignore the first fifth: at the start of a run, all values change
    begin, end = spec.start + (spec.end - spec.start) / 5, spec.end
    if chart.finish is not None:
        begin, end = -inf, inf  # until it is finished, the samples have times, but the axis has steps
    values = extent((series for series in chart.series if series.name not in spec.hidden), begin, end)
    tolerance = 0.02 if spec.min_relative_range or spec.y_min is not None else 0.0
    return not chart.stays_in_front and (
        values is None or values[1] - values[0] <= tolerance * abs(values[1])
    )


def visible_part(chart: ChartData) -> ChartData:
    """Return the chart without hidden series, and with only the samples of its visible range."""
    start, end = chart.spec.start, chart.spec.end
    visible_series = []
    for series in chart.series:
        if series.name in chart.spec.hidden:
            continue
        first, last = bisect_left(series.times, start), bisect_right(series.times, end)
        visible_series.append(Series(series.name, series.times[first:last], series.values[first:last]))
    return replace(chart, series=tuple(visible_series))


def split_by_series(chart: ChartData) -> list[ChartData]:
    """Split a chart into one chart per visible series, all on the same scale."""
    visible_series = [series for series in chart.series if series.name not in chart.spec.hidden]
    value_range = extent(visible_series, chart.spec.start, chart.spec.end)
    low, high = value_range if value_range is not None else (None, None)
    if len(visible_series) < 2 or low == high:
        low = high = None
    spec = chart.spec
    return [
        ChartData(
            f"{chart.id}/{series.name}",
            (series,),
            replace(
                spec,
                title=sanitize(series.name),
                y_min=spec.y_min if spec.y_min is not None or spec.is_logarithmic else low,
                y_max=spec.y_max if spec.y_max is not None else high,
                selected=None,
            ),
            chart.unit,
        )
        for series in visible_series
    ]


MIN_RELATIVE_RANGE = 0.25
"""Minimum span of a value axis relative to the values; not for losses, whose small changes matter."""

_STEPS_PER_RANGE = 120
"""A time range that follows the newest samples moves by at most a 120th of its length at a time.

Smaller moves would redraw all charts too often.
"""

_EVENT_SIGNS: dict[str, tuple[str, Tone]] = {
    "checkpoint": ("◆", "good"),
    "restart": ("↻", "caution"),
    "error": ("✗", "bad"),
}


def run_charts(run: RunSnapshot, view: ChartView) -> list[ChartData]:
    """Return the charts of a run: usually the loss, then GPU utilization and memory, then all others."""
    start, end = time_range(run, view)
    spec = ChartSpec(
        start=start,
        end=end,
        x_axis="relative" if view.x_axis == "step" else view.x_axis,
        origin=full_range(run)[0],
        end_label="end" if run.job.is_finished else "now",
        smoothing=view.smoothing,
        is_logarithmic=view.log_scale,
        marks=event_marks(run),
        cursor=view.cursor if view.cursor is not None and start <= view.cursor <= end else None,
        hidden=view.hidden,
        selected=view.selected,
        emphasis=frozenset(finding.node for finding in run.findings if finding.node is not None),
        empty_text="no data" if run.metrics_at else "reading…",
    )
    if spec.x_axis == "relative" and view.window.end is not None:
        spec = replace(spec, x_axis="clock")  # a chart of the past has no "now"
    log_charts = [] if run.progress is None else _progress_charts(run, run.progress, spec, view)
    metric_charts = [chart for chart in log_charts if chart.id.startswith(METRIC_ID_PREFIX)]
    log_charts = log_charts[: len(log_charts) - len(metric_charts)]
    hardware_charts = [_with_band(chart, view) for chart in _hardware_charts(run, spec, view.node)]
    charts = [*log_charts[:1], *hardware_charts[:2], *log_charts[1:], *hardware_charts[2:], *metric_charts]
    front_positions = _front_positions(run.progress, view)
    charts = [replace(chart, stays_in_front=chart.id in front_positions) for chart in charts]
    return sorted(charts, key=lambda chart: front_positions.get(chart.id, len(front_positions)))


def full_range(run: RunSnapshot) -> tuple[float, float]:
    """Return the time range of the whole run, until now or its end (epoch seconds)."""
    end = run.job.updated_at if run.job.is_finished else None
    last = (end or run.server_now).timestamp()
    first = run.running_since or run.job.created_at
    return min(first.timestamp() if first else last - 1, last - 1), last


def time_range(run: RunSnapshot, view: ChartView) -> tuple[float, float]:
    """Return the visible time range (epoch seconds)."""
    first, last = full_range(run)
    start, end = view.window.bounds(first, last)
    if view.window.follows:
        span = view.window.span
        end = _stepped_end(end, end - start if span is None or start <= first else span)
        if span is not None and start > first:
            # Between its steps, both edges stay fixed, or every update would redraw all charts.
            start = end - span
    return start, end


def step_time_map(run: RunSnapshot | None) -> StepTimeMap:
    return StepTimeMap(run.progress.step_series if run is not None and run.progress is not None else EMPTY)


def _progress_charts(
    run: RunSnapshot, progress: ProgressSnapshot, spec: ChartSpec, view: ChartView
) -> list[ChartData]:
    """Return the charts of values in the log: loss, throughput, metrics."""
    # Logs are read from their end: until all is read, the curves lack the run's first steps.
    unread_note = "" if run.log_read else ", still reading"
    throughput, throughput_unit = progress.throughput_series
    if throughput is progress.rate_series and is_slow(
        progress.rate_steps_per_s or inf
    ):  # seconds per step, as in the header
        values = tuple(1 / rate if rate > 0 else nan for rate in throughput.values)
        throughput, throughput_unit = replace(throughput, values=values), "s/it"
    loss_note = "" if progress.loss is None or isfinite(progress.loss) else f"now {progress.loss}"
    is_by_step = view.x_axis == "step" and bool(progress.step_series.values)
    spec = _spec_by_step(spec, progress) if is_by_step else spec
    loss_spec = replace(spec, unit=number, has_main_line=True)
    rate_spec = replace(spec, unit=number, min_relative_range=MIN_RELATIVE_RANGE)
    losses = (("loss", progress.loss_series), ("eval loss", progress.eval_loss_series))
    learning_rate = ("learning rate", progress.learning_rate_series)
    curves: list[tuple[str, str, tuple[tuple[str, Series], ...], ChartSpec, str]] = [
        ("loss", "loss", losses, replace(loss_spec, note=loss_note), ""),
        (
            "throughput",
            throughput_unit,
            ((throughput_unit, throughput),),
            replace(rate_spec, unit=_rate_text),
            throughput_unit,
        ),
        ("grad-norm", "grad norm", (("grad norm", progress.grad_norm_series),), rate_spec, ""),
        ("learning-rate", "learning rate", (learning_rate,), rate_spec, ""),
    ]
    front_positions = _front_positions(progress, view)
    for name in grouped(progress.metrics):
        if view.every_metric or METRIC_ID_PREFIX + name in front_positions:
            title = sanitize(name)
            curves.append((METRIC_ID_PREFIX + name, title, ((title, progress.metrics[name]),), loss_spec, ""))
    finish = partial(_with_step_axis, progress=progress, whole=run.log_read) if is_by_step else None
    return [
        ChartData(
            chart_id,
            tuple(replace(series, name=name) for name, series in lines if series.values),
            replace(chart_spec, title=f"{title}{unread_note}"),
            unit,
            finish,
        )
        for chart_id, title, lines, chart_spec, unit in curves
        if any(series.values for _, series in lines)
    ]


def _spec_by_step(spec: ChartSpec, progress: ProgressSnapshot) -> ChartSpec:
    time_map = StepTimeMap(progress.step_series)
    start, end = time_map.step(spec.start), time_map.step(spec.end)
    return replace(
        spec,
        x_axis="step",
        start=min(start, end - 1),
        end=end,
        cursor=None if spec.cursor is None else time_map.step(spec.cursor),
        marks=_marks_by_step(_TimedMarks(spec.marks, progress.step_series)),
    )


class _TimedMarks(NamedTuple):
    marks: tuple[Mark, ...]
    steps: Series


def _whole_argument(timed: _TimedMarks) -> _TimedMarks:
    return timed


@cached_by(_whole_argument)
def _marks_by_step(timed: _TimedMarks) -> tuple[Mark, ...]:
    time_map = StepTimeMap(timed.steps)
    return tuple(replace(mark, at=time_map.step(mark.at)) for mark in timed.marks)


def _with_step_axis(chart: ChartData, *, progress: ProgressSnapshot, whole: bool) -> ChartData:
    series_by_step = tuple(over_steps(series, progress, whole=whole) for series in chart.series)
    return replace(chart, series=series_by_step)


def _hardware_charts(run: RunSnapshot, spec: ChartSpec, node: str | None) -> list[ChartData]:
    """Return the charts of the nodes' hardware metrics: GPUs, CPU, memory, disk."""
    nodes = run.metrics.nodes if run.metrics else ()
    spec = replace(spec, y_min=0.0)
    fraction_spec = replace(spec, unit=percent, y_max=1.0, is_logarithmic=False)
    bytes_spec = replace(spec, unit=bytes_iec, tick_base=2)
    limit_mib = run.job.instance_type.gpu_memory_limit_mib
    suffix = "" if node is None else f", {sanitize(node)}"
    utilization_spec = replace(fraction_spec, title=f"GPU use{suffix}")
    memory_spec = replace(bytes_spec, title=f"GPU memory{suffix}")
    if limit_mib:
        memory_spec = replace(memory_spec, y_max=float(limit_mib * BYTES_PER_MIB), is_logarithmic=False)
    if node is None:
        utilization_lines = _node_series(nodes, lambda machine: machine.mean_utilization)
        memory_lines = _node_series(nodes, lambda machine: machine.mean_memory)
    else:
        utilization_lines = _gpu_series(nodes, node, lambda machine: machine.gpu_utilization)
        memory_lines = _gpu_series(nodes, node, lambda machine: machine.gpu_memory)
    shown_nodes = [machine for machine in nodes if node is None or machine.name == node]
    if node is not None:  # keep the color that the node has among all nodes
        node_index = next((node_index for node_index, machine in enumerate(nodes) if machine.name == node), 0)
        spec, bytes_spec = replace(spec, first_color=node_index), replace(bytes_spec, first_color=node_index)
    node_charts = (
        ("cpu", "CPU cores", replace(spec, unit=cores), lambda machine: machine.cpu, "cores"),
        ("memory", "memory", bytes_spec, lambda machine: machine.cpu_memory, "bytes"),
        ("disk", "disk", bytes_spec, lambda machine: machine.disk_usage, "bytes"),
    )
    charts = [
        ChartData("util", utilization_lines, utilization_spec, "fraction"),
        ChartData("gpu-memory", memory_lines, memory_spec, "bytes"),
        *(
            ChartData(name, _node_series(shown_nodes, series), replace(chart_spec, title=title), unit)
            for name, title, chart_spec, series, unit in node_charts
        ),
    ]
    if run.metrics and run.metrics.cache_usage.values:
        line = replace(run.metrics.cache_usage, name="cache")
        charts.append(ChartData("cache", (line,), replace(bytes_spec, title="cache", first_color=0), "bytes"))
    return charts


def _node_series(
    nodes: Sequence[NodeSnapshot], series: Callable[[NodeSnapshot], Series]
) -> tuple[Series, ...]:
    return tuple(replace(series(node), name=sanitize(node.name)) for node in nodes)


def _gpu_series(
    nodes: Sequence[NodeSnapshot], name: str, series: Callable[[NodeSnapshot], tuple[Series, ...]]
) -> tuple[Series, ...]:
    return tuple(
        replace(line, name=f"gpu {sanitize(gpu)}")
        for node in nodes
        if node.name == name
        for gpu, line in zip(node.gpus, series(node), strict=False)
    )


def _front_positions(progress: ProgressSnapshot | None, view: ChartView) -> dict[str, int]:
    """Return the positions of the front charts by id: the reward, else the loss, then pinned charts."""
    headline_names = headline_metrics(progress.metrics) if progress is not None else []
    first_id, *other_ids = [METRIC_ID_PREFIX + name for name in headline_names] or ["loss"]
    chart_ids = (first_id, *view.pins, *other_ids)
    return {chart_id: position for position, chart_id in enumerate(dict.fromkeys(chart_ids))}


def _with_band(chart: ChartData, view: ChartView) -> ChartData:
    """Return the chart with several nodes or GPUs drawn as a band, unless the user chose lines.

    Many lines would cover each other.
    """
    return replace(chart, spec=replace(chart.spec, has_band=len(chart.series) > 1 and not view.draws_lines))


def _stepped_end(end: float, length: float) -> float:
    """Round up the end of a time range of this length (seconds) to a multiple of a step.

    The step is a power of two, so that it rarely changes while the range grows.
    """
    step = 2.0 ** floor(log2(max(length, 1.0) / _STEPS_PER_RANGE))
    return ceil(end / step) * step


def _mark_sources(run: RunSnapshot) -> tuple[object, ...]:
    log_events = run.progress and (run.progress.saves, run.progress.restarts, run.progress.errors.kept)
    return run.status_history, run.checkpoints, log_events, run.findings


@cached_by(_mark_sources)
def event_marks(run: RunSnapshot) -> tuple[Mark, ...]:
    """Return marks where events happened and where problems began; their texts are sanitized."""
    marks = [
        Mark(event.at_s, *_EVENT_SIGNS[event.kind], sanitize(event.text))
        for event in run.events
        if event.kind in _EVENT_SIGNS
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
