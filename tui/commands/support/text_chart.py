"""Charts for plain terminals, drawn by plotext, which is imported only when a chart is drawn."""

from __future__ import annotations

import math
import shutil
import string
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import cycle

from tui.analysis.series import Series, column_extremes, extent
from tui.commands.support.output import CommandOutput
from tui.text.labels import labeled_ticks, number_formats
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.units import number

HEIGHT_LINES = 16
TICK_COUNT = 5
MAX_NAME_CELLS = 24
CURVE_COLORS = (12, 11, 10, 13, 14, 9, 6, 3)
"""Terminal color number of each curve of a chart, in order."""

AxisLabel = Callable[[float], str]


def draw_chart(
    output: CommandOutput,
    title: str,
    series: Sequence[Series],
    *,
    y_label: Callable[[float], str] = number,
    x_label: AxisLabel | None = None,
    y_max: float | None = None,
    y_min: float | None = None,
) -> None:
    """Print one chart as wide as the terminal, without colors if the output is not a terminal.

    Every column shows the minimum and maximum of its samples, so that no spike is lost; gaps and non-finite
    values are left out.
    """
    finite_series = [curve for curve in map(_without_infinite_values, series) if extent([curve])]
    output.write_text(output.paint(sanitize(title), "strong") + "\n")
    if not finite_series:
        output.write_text("  (no data)\n")
        return
    width = max(30, output.width_cells or shutil.get_terminal_size((100, HEIGHT_LINES)).columns)
    letters = string.ascii_letters if not output.has_color and len(finite_series) > 1 else ""
    chart = _render_chart(finite_series, width, y_label, x_label, (y_min, y_max), letters)
    text = "\n".join([*_legend(finite_series, letters, width), chart.strip("\n")])
    lines = (text if output.has_color else _without_colors(text)).splitlines()
    output.write_text("\n".join(line.rstrip() for line in lines) + "\n")


def _without_colors(text: str) -> str:
    import plotext  # type: ignore[import-untyped]

    return str(plotext.uncolorize(text))


def _legend(series: Sequence[Series], letters: str, width: int) -> list[str]:
    """Return the names of several curves, each after its letter or color mark, in columns."""
    entries = []
    for curve, letter, color in zip(
        series if len(series) > 1 else (), cycle(letters or "━"), cycle(CURVE_COLORS)
    ):
        name = clip(sanitize(curve.name), MAX_NAME_CELLS)
        entries.append(
            f"\x1b[38;5;{color}m{letter}\x1b[0m {name}" + " " * (MAX_NAME_CELLS - cell_width(name))
        )
    names_per_line = max(1, width // (MAX_NAME_CELLS + 4))
    lines = (entries[start : start + names_per_line] for start in range(0, len(entries), names_per_line))
    return ["  ".join(line).rstrip() for line in lines]


def _render_chart(
    series: Sequence[Series],
    width: int,
    y_label: Callable[[float], str],
    x_label: AxisLabel | None,
    y_limits: tuple[float | None, float | None],
    letters: str,
) -> str:
    import plotext

    start, end = min(curve.times[0] for curve in series), max(curve.times[-1] for curve in series)
    if end <= start:
        start, end = start - 1, end + 1
    low, high = _y_range(series, *y_limits)
    figure = plotext.figure
    figure.clear()
    figure.theme("simple")
    figure.legend(False)
    figure.plot_size(width, HEIGHT_LINES)
    for curve, letter, color in zip(series, cycle(letters or ["braille"]), cycle(CURVE_COLORS)):
        marker = plotext.marker(letter, pixel=plotext.pixel(foreground=color))
        # Two points per cell, because a braille character has two columns of dots.
        for points in _line_segments(curve, start, end, width * 2):
            xs, ys = zip(*points, strict=True)
            figure.draw(figure.signal(xs, ys, marker=marker).lines())
    for axis, axis_min, axis_max, label in (("x", start, end, x_label or number), ("y", low, high, y_label)):
        tick_values = [
            axis_min + (axis_max - axis_min) * index / (TICK_COUNT - 1) for index in range(TICK_COUNT)
        ]
        ticks = labeled_ticks(
            tick_values, (number, *number_formats(tick_values)) if label is number else (label,)
        )
        figure.ruler(axis).lim(axis_min, axis_max)
        figure.ruler(axis).ticks([index for index, _ in ticks], [text for _, text in ticks])
    return str(figure.build())


def _y_range(series: Sequence[Series], y_min: float | None, y_max: float | None) -> tuple[float, float]:
    low, high = extent(series) or (0.0, 1.0)
    low, high = low if y_min is None else min(y_min, low), high if y_max is None else max(y_max, high)
    if low == high:
        return low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    return low, high


def _without_infinite_values(series: Series) -> Series:
    """Return the curve with gaps (NaN) in place of infinite values."""
    values = tuple(value if math.isfinite(value) else math.nan for value in series.values)
    return Series(series.name, series.times, values)


def _line_segments(series: Series, start: float, end: float, columns: int) -> list[list[tuple[float, float]]]:
    """Return a polyline for each stretch without gaps: the lowest and highest value of each column."""
    width = (end - start) / columns
    samples = zip(series.times, series.values, strict=True)
    gap_columns = {int((time - start) / width) for time, value in samples if math.isnan(value)}
    lines: list[list[tuple[float, float]]] = [[]]
    for column_index, extremes in enumerate(column_extremes(series, start, end, columns)):
        if extremes is not None:
            lines[-1] += [(start + (column_index + 0.5) * width, value) for value in dict.fromkeys(extremes)]
        elif column_index in gap_columns:
            lines.append([])
    return list(filter(None, lines))


def clock_label(span_s: float) -> AxisLabel:
    """Return a formatter of epoch seconds: the time of day, with the date if the axis exceeds a day."""
    pattern = "%m-%d %H:%M" if span_s > 86_400 else ("%H:%M" if span_s > 600 else "%H:%M:%S")
    return lambda x: datetime.fromtimestamp(x, UTC).astimezone().strftime(pattern)
