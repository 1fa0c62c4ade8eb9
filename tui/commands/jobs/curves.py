"""Print the curves of a run's log: its loss, its speed, and the metrics of its trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui.analysis.export import csv_lines, json_number
from tui.analysis.progress.metrics import Curve, curves_of
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.series import Series, latest, value_range
from tui.commands.support.exit_codes import CommandFailed, ExitCode, known_names
from tui.commands.support.options import CSV, JSON, NDJSON
from tui.commands.support.output import Output, ascii_json
from tui.commands.support.tables import table_of
from tui.tables.column import Column, text_column
from tui.text.sanitize import sanitize
from tui.text.times import iso_time
from tui.text.units import count, number

SERIES_COLUMNS = ("series", "time", "step", "value", "unit")


CURVE_COLUMNS: tuple[Column[Curve], ...] = (
    text_column("CURVE", lambda curve: curve.name),
    text_column("READINGS", lambda curve: count(len(curve.series)), right=True),
    text_column("FIRST", lambda curve: number(curve.series.values[0]), right=True),
    text_column("LEAST", lambda curve: number((value_range(curve.series.values) or (None,))[0]), right=True),
    text_column("MOST", lambda curve: number((value_range(curve.series.values) or (None,))[-1]), right=True),
    text_column("LAST", lambda curve: number(latest(curve.series)), "strong", right=True),
)


def chosen_curves(progress: ProgressSnapshot, names: Sequence[str], source: str) -> list[Curve]:
    """Return the curves with these names. Raises CommandFailed for a name that the source lacks."""
    curves = {curve.name: curve for curve in curves_of(progress)}
    missing = next((name for name in names if name not in curves), None)
    if missing is not None:
        message = f"{source} has no metric {sanitize(missing)!r} (it has: {known_names(curves)})"
        raise CommandFailed(message, ExitCode.NOT_FOUND)
    return [curves[name] for name in dict.fromkeys(names)]


def points_of(curve: Curve, progress: ProgressSnapshot) -> list[dict[str, Any]]:
    return [
        {"time": iso_time(time), "step": step, "value": json_number(value)}
        for time, step, value in _points(curve.series, progress)
    ]


def print_curves(
    output: Output, curves: Sequence[Curve], progress: ProgressSnapshot, output_format: str
) -> None:
    """Print every reading of the curves, or as a table what they are."""
    if output_format == JSON:
        output.json({curve.name: points_of(curve, progress) for curve in curves})
    elif output_format == NDJSON:
        for curve in curves:
            for point in points_of(curve, progress):
                output.data(ascii_json({"series": curve.name, **point}) + "\n")
    elif output_format == CSV:
        output.data(csv_lines([SERIES_COLUMNS]))
        for curve in curves:
            points = _points(curve.series, progress)
            output.data(
                csv_lines((curve.name, iso_time(at), step, value, curve.unit) for at, step, value in points)
            )
    else:
        output.data(table_of(CURVE_COLUMNS, curves, output))


def print_names(output: Output, curves: Sequence[Curve], output_format: str) -> None:
    """Print the names of the curves, each with its number of readings and its last value."""
    rows = [(curve.name, len(curve.series), curve.series.values[-1], curve.unit) for curve in curves]
    names = ("name", "readings", "last", "unit")
    if output_format == JSON:
        output.json([dict(zip(names, (*row[:2], json_number(row[2]), row[3]), strict=True)) for row in rows])
    elif output_format == CSV:
        output.data(csv_lines([names, *rows]))
    else:
        output.data(table_of(CURVE_COLUMNS, curves, output))


def _points(series: Series, progress: ProgressSnapshot) -> list[tuple[float, int | None, float]]:
    """Return time, step and value of each reading; the step is the last one logged at or before its time."""
    marks = progress.step_series
    points: list[tuple[float, int | None, float]] = []
    index, step = 0, None
    exact = _exact_steps(series, progress)
    for position, (time, value) in enumerate(zip(series.times, series.values, strict=True)):
        while index < len(marks) and marks.times[index] <= time:
            step = int(marks.values[index])
            index += 1
        points.append((time, exact[position] if exact else step, value))
    return points


def _exact_steps(series: Series, progress: ProgressSnapshot) -> list[int] | None:
    """Return the steps logged with the losses themselves, or None unless every loss has one."""
    if series is not progress.loss_series or len(progress.loss_by_step) != len(series):
        return None
    same = all(
        a == b or (a != a and b != b) for (_, a), b in zip(progress.loss_by_step, series.values, strict=True)
    )
    return [step for step, _ in progress.loss_by_step] if same else None
