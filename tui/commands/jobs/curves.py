"""Print the curves of a run's log: its loss, its speed, and the metrics of its trainer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tui.analysis.export import csv_lines, json_number
from tui.analysis.progress.metrics import Curve, curves_of
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.series import Series, latest, value_range
from tui.commands.support.output import NDJSON, CommandFailed, CommandOutput, ExitCode, known_names_text
from tui.commands.support.tables import table_text
from tui.tables.column import Column, text_column
from tui.text.sanitize import sanitize
from tui.text.times import iso_time
from tui.text.units import count, number

CURVE_COLUMNS: tuple[Column[Curve], ...] = (
    text_column("CURVE", lambda curve: curve.name),
    text_column("READINGS", lambda curve: count(len(curve.series)), right_aligned=True),
    text_column("FIRST", lambda curve: number(curve.series.values[0]), right_aligned=True),
    text_column(
        "LEAST", lambda curve: number((value_range(curve.series.values) or (None,))[0]), right_aligned=True
    ),
    text_column(
        "MOST", lambda curve: number((value_range(curve.series.values) or (None,))[-1]), right_aligned=True
    ),
    text_column("LAST", lambda curve: number(latest(curve.series)), "strong", right_aligned=True),
)
CURVE_FIELDS: tuple[Column[Curve], ...] = (
    Column("name", export=lambda curve: curve.name),
    Column("readings", export=lambda curve: len(curve.series)),
    Column("last", export=lambda curve: curve.series.values[-1]),
    Column("unit", export=lambda curve: curve.unit),
)
"""Fields of a curve in CSV and JSON."""


def chosen_curves(progress: ProgressSnapshot, names: Sequence[str], source: str) -> list[Curve]:
    """Return the curves with these names; part of a name is enough if only one curve's name contains it.

    Raises CommandFailed for a name that matches no curve, or several.
    """
    curves = {curve.name: curve for curve in curves_of(progress)}
    chosen_names = []
    for name in names:
        matching = [name] if name in curves else [curve for curve in curves if name in curve]
        if len(matching) != 1:
            choices = known_names_text(matching or curves)
            message = f"{source} has no metric {sanitize(name)!r} (it has: {choices})"
            raise CommandFailed(message, ExitCode.NOT_FOUND)
        chosen_names += matching
    return [curves[name] for name in dict.fromkeys(chosen_names)]


def point_records(curve: Curve, progress: ProgressSnapshot) -> list[dict[str, Any]]:
    return [
        {"time": iso_time(time), "step": step, "value": json_number(value)}
        for time, step, value in _points(curve.series, progress)
    ]


def print_curves(output: CommandOutput, curves: Sequence[Curve], progress: ProgressSnapshot) -> None:
    """Print the curves: every reading as CSV and JSON, one row per curve in a table."""
    rows = (
        (curve.name, iso_time(time), step, value, curve.unit)
        for curve in curves
        for time, step, value in _points(curve.series, progress)
    )

    def document() -> Any:
        points = {curve.name: point_records(curve, progress) for curve in curves}
        if output.format != NDJSON:
            return points
        return [{"series": name, **point} for name, curve_points in points.items() for point in curve_points]

    output.print_result(
        document,
        lambda: table_text(CURVE_COLUMNS, curves, output),
        lambda: csv_lines([("series", "time", "step", "value", "unit"), *rows]),
    )


def _points(series: Series, progress: ProgressSnapshot) -> list[tuple[float, int | None, float]]:
    """Return time, step and value of each reading; the step is the last logged step at that time."""
    step_series = progress.step_series
    step_counts = [bisect_right(step_series.times, time) for time in series.times]
    steps = [int(step_series.values[step_count - 1]) if step_count else None for step_count in step_counts]
    return list(zip(series.times, steps, series.values, strict=True))
