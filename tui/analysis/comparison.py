"""Compare runs: their final values side by side, and their curves in one chart. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from statistics import median_high
from typing import TYPE_CHECKING, Literal

from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S
from tui.analysis.cost import Cost
from tui.analysis.export import ExportTable, Value, records
from tui.analysis.progress.holes import is_read_between, unread_steps
from tui.analysis.progress.metrics import grouped, headline_metrics, headline_series
from tui.analysis.progress.snapshot import ProgressSnapshot, over_steps
from tui.analysis.run.resumed import joined, predecessor
from tui.analysis.series import EMPTY, Series, latest, values_between
from tui.analysis.status import status_view
from tui.text.sanitize import sanitize
from tui.text.times import DATE_AND_MINUTE, iso_time, local_time, time_key
from tui.text.units import UNKNOWN, count, duration, money, number, percent, rate, significant

if TYPE_CHECKING:
    from tui.analysis.run.snapshot import RunSnapshot

MAX_COMPARED_RUNS = 8
"""Limited by the number of distinguishable line colors."""

State = Literal["waiting", "reading", "read", "gone", "failed"]
Axis = Literal["step", "elapsed", "clock"]
AXES: tuple[Axis, ...] = ("step", "elapsed", "clock")
MEASURES = ("loss", "eval loss", "throughput")
"""The curves of every comparison; metrics that at least two of its runs report are added."""
Change = Literal["", "shown", "less", "more"]
"""How a row shows the change from the first run: not at all, without a judgment (``shown``), or with the
lowest (``less``) or the highest value (``more``) marked as the best."""

_SPEED_UNITS: tuple[tuple[str, Callable[[ProgressSnapshot], Series]], ...] = (
    ("tok/s", lambda progress: progress.tokens_per_s_series),
    ("samples/s", lambda progress: progress.samples_per_s_series),
    ("it/s", lambda progress: progress.rate_series),
)


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run in a comparison: its data so far, and how much of its log has been read.

    ``run`` is None until data has been read. ``fraction_read`` is the fraction of the log's time range that
    has been read, and ``gap_count`` the number of gaps in the log. ``error`` explains why reading failed (not
    sanitized).
    """

    job: TrainingJob
    state: State = "waiting"
    run: RunSnapshot | None = None
    fraction_read: float | None = None
    error: str = ""
    gap_count: int = 0

    @property
    def progress(self) -> ProgressSnapshot:
        return (self.run.progress if self.run is not None else None) or ProgressSnapshot()

    @property
    def cost(self) -> Cost:
        return self.run.cost if self.run is not None else Cost()

    @property
    def has_curves(self) -> bool:
        """True if the log reports training progress."""
        progress = self.progress
        return bool(len(progress.loss_series) or len(progress.step_series))


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A property of all runs: ``values`` for export, ``texts`` for display, both in the runs' order.

    ``differs`` is True if the displayed texts are not all equal. ``best`` holds the indexes of the runs with
    the best value; it is empty for a property that cannot be ranked. ``texts`` are sanitized.
    """

    id: str
    title: str
    values: tuple[Value, ...]
    texts: tuple[str, ...]
    differs: bool
    best: frozenset[int] = frozenset()


def labels(runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """Return the runs' names, sanitized; names that several runs share are followed by the job id."""
    names = [sanitize(run.job.name or run.job.id) for run in runs]
    return tuple(
        f"{name} {run.job.id}" if names.count(name) > 1 and name != run.job.id else name
        for name, run in zip(names, runs, strict=True)
    )


def comparison_rows(runs: Sequence[ComparedRun]) -> tuple[ComparisonRow, ...]:
    """Return every property that any of the runs has, in a fixed order.

    Properties from a log are left out until the whole log has been read.
    """
    runs = [_without_partial_progress(run) for run in runs]
    speeds, unit = _speeds_and_unit(runs)
    medians = {id(run): _median(speed) for run, speed in zip(runs, speeds, strict=True)}
    first_speed = next((speed for speed in medians.values() if speed), None)
    in_steps = unit == "it/s"
    show_speed = (
        _numeric_formatter(lambda speed: rate(speed, like=first_speed)) if in_steps else _format_significant
    )
    make_row = partial(_row, runs)
    progress_with_loss = [run.progress for run in runs if run.progress.loss is not None]
    loss_ranks_runs = all(progress.has_ranking_loss for progress in progress_with_loss)
    # Values at different steps don't show which run is better.
    is_at_same_step = len({progress.step for progress in progress_with_loss}) < 2
    loss_change: Change = "less" if loss_ranks_runs and is_at_same_step else "shown"
    common_step, common_losses = _at_common_step(runs)

    rows = [
        make_row("status", "status", lambda run: run.job.current_status, _format_status),
        make_row(
            "final_reward",
            "last reward",
            _last_reward,
            _format_number,
            "more" if is_at_same_step else "shown",
        ),
        make_row("final_loss", "last loss", lambda run: run.progress.loss, _format_number, loss_change),
        make_row(
            "common_step_loss",
            "same-step loss",
            lambda run: common_losses.get(run.job.id),
            _format_number,
            "less" if loss_ranks_runs else "shown",
        ),
        make_row(
            "common_step",
            "same step",
            lambda run: common_step if run.job.id in common_losses else None,
            _format_count,
        ),
        make_row("best_loss", "best loss", _best_loss, _format_number, "less"),
        make_row("best_loss_step", "best loss at", _best_step, _format_count),
        make_row("eval_loss", "eval loss", lambda run: run.progress.eval_loss, _format_number, loss_change),
        make_row(
            "best_eval_loss",
            "best eval",
            lambda run: _best_value(run.progress, run.progress.eval_loss_series),
            _format_number,
            "less",
        ),
        make_row(
            "throughput",
            "median speed" if in_steps else f"median {unit}",
            lambda run: medians[id(run)],
            show_speed,
            "more",
        ),
        make_row(
            "peak_learning_rate",
            "peak lr",
            lambda run: max(values_between(run.progress.learning_rate_series), default=None),
            _format_number,
        ),
        make_row("learning_rate", "last lr", lambda run: run.progress.learning_rate, _format_number),
        make_row("step", "step", lambda run: run.progress.step, _format_count),
        make_row("total_steps", "total steps", lambda run: run.progress.total_steps, _format_count),
        make_row("epoch", "epoch", lambda run: run.progress.epoch, _format_significant),
        make_row("duration_s", "duration", _running_s, _format_duration, "shown"),
        make_row("gpu_hours", "GPU-hours", lambda run: run.cost.gpu_hours, _format_significant, "shown"),
        make_row(
            "cost_usd",
            "cost, est.",
            lambda run: run.cost.usd,
            _numeric_formatter(lambda usd: f"≈ {money(usd)}"),
            "shown",
        ),
        make_row("checkpoints", "checkpoints", _checkpoint_count, _format_count),
        make_row("last_checkpoint", "newest", _last_checkpoint, _format_text),
        make_row("project", "project", lambda run: run.job.project_name or None, _format_text),
        make_row("instance", "instance", lambda run: run.job.instance_type.name or None, _format_text),
        make_row("gpu_type", "GPU", lambda run: run.job.instance_type.gpu_type, _format_text),
        make_row(
            "nodes", "nodes", lambda run: run.run.node_count if run.run else run.job.node_count, _format_count
        ),
        make_row("gpus", "total GPUs", _gpu_count, _format_count),
        make_row(
            "availability",
            "capacity",
            lambda run: (run.job.availability_model or "").lower() or None,
            _format_text,
        ),
        make_row("created_at", "created", lambda run: run.job.created_at, _format_time),
        make_row("restarts", "restarts", lambda run: len(run.progress.restarts) or None, _format_count),
        make_row("errors", "error lines", lambda run: run.progress.errors.count or None, _format_count),
        make_row("error_message", "message", lambda run: run.job.error_message or None, _format_text),
    ]
    return tuple(
        property_row for property_row in rows if any(value is not None for value in property_row.values)
    )


def _without_partial_progress(compared_run: ComparedRun) -> ComparedRun:
    if compared_run.state != "reading" or compared_run.run is None:
        return compared_run
    return replace(compared_run, run=replace(compared_run.run, progress=None))


def comparison_table(runs: Sequence[ComparedRun]) -> ExportTable:
    runs = [_without_partial_progress(run) for run in runs]
    names = [run.job.name for run in runs]
    rows: list[tuple[Value, ...]] = [("name", len(set(names)) > 1, *names)]
    table_rows: list[tuple[Value, ...]] = [
        (row.id, row.differs, *row.values) for row in comparison_rows(runs)
    ]
    table_rows.append(("throughput_unit", False, *([throughput_unit(runs)] * len(runs))))
    return ExportTable(
        "comparison", ("property", "differs", *(run.job.id for run in runs)), (*rows, *table_rows)
    )


def job_records(runs: Sequence[ComparedRun]) -> list[dict[str, object]]:
    """Return one JSON-ready object per run with all properties of ``comparison_rows``."""
    properties = comparison_rows(runs)
    property_rows: list[tuple[Value, ...]] = [
        ("job_id", *(run.job.id for run in runs)),
        ("name", *(run.job.name for run in runs)),
        *((row.id, *row.values) for row in properties),
        ("throughput_unit", *([throughput_unit(runs)] * len(runs))),
        ("log_gaps", *(run.gap_count for run in runs)),
    ]
    columns = tuple(str(property_row[0]) for property_row in property_rows)
    rows = tuple(
        tuple(property_row[index + 1] for property_row in property_rows) for index in range(len(runs))
    )
    return records(ExportTable("jobs", columns, rows))


def measures(runs: Sequence[ComparedRun]) -> list[str]:
    """Return the names of all curves: rewards (of reinforcement learning), ``MEASURES``, then other metrics.

    A metric needs at least two runs that report it.
    """
    metrics_by_run = [run.progress.metrics for run in runs]
    names = dict.fromkeys(chain(*metrics_by_run))
    shared = [
        name
        for name in names
        if name not in MEASURES and sum(name in metrics for metrics in metrics_by_run) > 1
    ]
    headlines = headline_metrics(shared)
    return [*headlines, *MEASURES, *(name for name in grouped(shared) if name not in headlines)]


def curves_table(runs: Sequence[ComparedRun], axis: Axis) -> ExportTable:
    """Return all curves as one table with a row for each sample, unsmoothed."""
    rows: list[tuple[Value, ...]] = []
    for measure in measures(runs):
        unit = throughput_unit(runs) if measure == "throughput" else ""
        for curve in curves(runs, measure, axis):
            for x, value in zip(curve.times, curve.values, strict=True):
                time: Value = iso_time(x) if axis == "clock" else (x if axis == "elapsed" else None)
                rows.append((measure, curve.name, time, int(x) if axis == "step" else None, value, unit))
    return ExportTable("curves", ("chart", "series", "time", "step", "value", "unit"), tuple(rows))


def curves(runs: Sequence[ComparedRun], measure: str, axis: Axis) -> tuple[Series, ...]:
    """Return one line per run that has the measure, named as in ``labels``.

    ``times`` are steps, seconds since the run began, or epoch seconds, depending on ``axis``. The line of a
    resumed run begins with the line of its predecessor if both runs are compared.
    """
    runs = [_with_predecessors(run, runs) for run in runs]
    speeds = _speeds_and_unit(runs)[0] if measure == "throughput" else ()
    lines = []
    for index, (run, name) in enumerate(zip(runs, labels(runs), strict=True)):
        if measure == "loss":
            series = _loss_curve(run.progress, axis)
        else:
            curve = run.progress.metrics.get(measure, EMPTY)
            if measure in MEASURES:
                curve = speeds[index] if speeds else run.progress.eval_loss_series
            series = over_steps(curve, run.progress) if axis == "step" else curve
        if axis == "elapsed" and len(series):
            began_s = min(began_at(run), series.times[0])
            series = Series("", tuple(time - began_s for time in series.times), series.values)
        if len(series):
            lines.append(Series(name, series.times, series.values))
    return tuple(lines)


def _with_predecessors(compared_run: ComparedRun, runs: Sequence[ComparedRun]) -> ComparedRun:
    """Return the run with the curves of its predecessors, as far as they are compared, prepended."""
    predecessor_job = predecessor(compared_run.job, [run.job for run in runs])
    if predecessor_job is None or compared_run.run is None:
        return compared_run
    joined_predecessor = _with_predecessors(next(run for run in runs if run.job is predecessor_job), runs)
    return replace(
        compared_run,
        run=replace(compared_run.run, progress=joined(joined_predecessor.progress, compared_run.progress)),
    )


def throughput_unit(runs: Sequence[ComparedRun]) -> str:
    return _speeds_and_unit(runs)[1]


def began_at(compared_run: ComparedRun) -> float:
    """Return when a run began (epoch seconds): from its status history, else its first log line."""
    run = compared_run.run
    running_time = run.running_time if run is not None else None
    if running_time is not None and running_time.measured and running_time.since is not None:
        return running_time.since.timestamp()
    if compared_run.progress.first_line_at_ns is not None:
        return compared_run.progress.first_line_at_ns / NS_PER_S
    return compared_run.job.created_at.timestamp() if compared_run.job.created_at else 0.0


def _loss_curve(progress: ProgressSnapshot, axis: Axis) -> Series:
    if axis != "step":
        return progress.loss_series
    if progress.loss_by_step:
        return Series(
            "loss",
            tuple(float(step) for step, _ in progress.loss_by_step),
            tuple(value for _, value in progress.loss_by_step),
        )
    return over_steps(progress.loss_series, progress)


def _speeds_and_unit(runs: Sequence[ComparedRun]) -> tuple[tuple[Series, ...], str]:
    """Return the speeds of all runs, and their unit, which, if possible, all runs with a speed report."""
    progress_with_speed = [run.progress for run in runs if len(run.progress.throughput_series[0])]
    for unit, series_of in _SPEED_UNITS:
        if progress_with_speed and all(len(series_of(progress)) for progress in progress_with_speed):
            return tuple(series_of(run.progress) for run in runs), unit
    # No unit is common to all runs, so use the unit that most runs report.
    unit, series_of = max(
        _SPEED_UNITS, key=lambda speed: sum(bool(len(speed[1](progress))) for progress in progress_with_speed)
    )
    return tuple(series_of(run.progress) if progress_with_speed else EMPTY for run in runs), unit


def _row(
    runs: Sequence[ComparedRun],
    row_id: str,
    title: str,
    value_of: Callable[[ComparedRun], Value],
    format_value: Callable[[Value], str],
    change: Change = "",
) -> ComparisonRow:
    values = [value_of(run) for run in runs]
    texts = [format_value(value) if value is not None else UNKNOWN for value in values]
    differs = len(set(texts)) > 1  # Values that are displayed alike count as equal.
    best = _best_columns(values, change) if differs else frozenset()
    if change:
        texts = [
            text + _change_text(values[0], value, column)
            for column, (text, value) in enumerate(zip(texts, values, strict=True))
        ]
    return ComparisonRow(row_id, title, tuple(values), tuple(texts), differs, best)


def _change_text(first_value: Value, value: Value, column: int) -> str:
    """Format the relative change from the first run, such as `` −12%``; empty in the first column."""
    if not column or not isinstance(first_value, int | float) or not isinstance(value, int | float):
        return ""
    if not math.isfinite(first_value) or not math.isfinite(value) or first_value == 0:
        return ""
    change = (value - first_value) / abs(first_value)
    return "" if abs(change) < 0.005 else f" {'+' if change > 0 else '−'}{_relative_text(abs(change))}"


def _relative_text(change: float) -> str:
    return percent(change) if change < 10 else f"×{change + 1:.0f}"


def _best_columns(values: Sequence[Value], change: Change) -> frozenset[int]:
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    if change not in ("less", "more") or len(numbers) < 2 or min(numbers) == max(numbers):
        return frozenset()
    best = min(numbers) if change == "less" else max(numbers)
    return frozenset(column for column, value in enumerate(values) if value == best)


def _gpu_count(compared_run: ComparedRun) -> int | None:
    nodes = compared_run.run.node_count if compared_run.run else compared_run.job.node_count
    per_node = compared_run.job.instance_type.gpu_count
    return per_node * nodes if nodes and per_node else None


def _running_s(compared_run: ComparedRun) -> float | None:
    running_time = compared_run.run.running_time if compared_run.run else None
    return (
        running_time.seconds
        if running_time is not None and (running_time.seconds or running_time.measured)
        else None
    )


def _last_reward(compared_run: ComparedRun) -> float | None:
    name, series = headline_series(compared_run.progress)
    return latest(series) if name == "reward" else None


def _best_loss(compared_run: ComparedRun) -> float | None:
    return _best_value(compared_run.progress, compared_run.progress.loss_series)


def _best_value(progress: ProgressSnapshot, series: Series) -> float | None:
    """Return the lowest value; None if losses do not rank this run, or if a gap may hide a lower loss."""
    finite_values = values_between(series)
    return min(finite_values) if finite_values and progress.has_ranking_loss and not progress.gaps else None


def _best_step(compared_run: ComparedRun) -> int | None:
    losses_and_steps = [
        (value, step) for step, value in compared_run.progress.loss_by_step if math.isfinite(value)
    ]
    return min(losses_and_steps)[1] if losses_and_steps and _best_loss(compared_run) is not None else None


def _at_common_step(runs: Sequence[ComparedRun]) -> tuple[int | None, dict[str, float]]:
    """Return the last step at which all runs with steps logged a loss, and the losses by job id.

    Return None and no losses if it is the last step of every run: the row of last losses shows the same.
    """
    losses_by_job = {}
    for run in runs:
        losses, step = _certain_losses(run.progress), run.progress.step
        # Losses with higher step numbers than the run are counted in another unit, such as samples.
        if run.state == "read" and losses and step is not None and max(losses) <= step:
            losses_by_job[run.job.id] = losses
    common = set.intersection(*map(set, losses_by_job.values())) if len(losses_by_job) > 1 else set[int]()
    last_step = max(common, default=None)
    if not last_step or all(last_step == max(losses) for losses in losses_by_job.values()):
        return None, {}
    return last_step, {job_id: losses[last_step] for job_id, losses in losses_by_job.items()}


def _certain_losses(progress: ProgressSnapshot) -> dict[int, float]:
    """Return the losses by step; leave out those next to unread parts of the log, which may change them."""
    unread_ranges = unread_steps(progress, whole=True)
    return {
        step: value for step, value in progress.loss_by_step if is_read_between(step, step, unread_ranges)
    }


def _median(series: Series) -> float | None:
    finite_values = values_between(series)
    return median_high(finite_values) if finite_values else None


def _checkpoint_count(compared_run: ComparedRun) -> int | None:
    if compared_run.run is None or compared_run.run.checkpoints is None:
        return None
    return len(compared_run.run.checkpoints)


def _last_checkpoint(compared_run: ComparedRun) -> str | None:
    checkpoints = compared_run.run.checkpoints if compared_run.run else None
    return (
        max(checkpoints, key=lambda checkpoint: time_key(checkpoint.created_at)).checkpoint_id
        if checkpoints
        else None
    )


def _format_status(value: Value) -> str:
    view = status_view(str(value))
    return f"{view.sign} {view.word}"


def _format_text(value: Value) -> str:
    return sanitize(str(value))


def _numeric_formatter(format_value: Callable[[float], str]) -> Callable[[Value], str]:
    return lambda value: format_value(value) if isinstance(value, int | float) else UNKNOWN


_format_count, _format_duration, _format_number = (
    _numeric_formatter(count),
    _numeric_formatter(duration),
    _numeric_formatter(number),
)


def _format_significant(value: Value) -> str:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return UNKNOWN
    return count(value) if abs(value) >= 1000 else significant(value)


def _format_time(value: Value) -> str:
    return local_time(value if isinstance(value, datetime) else None, DATE_AND_MINUTE) or UNKNOWN
