"""Charts for plain terminals, drawn by plotext, which is imported for the first chart."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo

from tui.analysis.series import Series, extent, reduce_columns
from tui.commands.support.output import Output
from tui.text.labels import labeled, number_formats
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.units import number

HEIGHT_LINES = 16
DOTS_PER_CELL = 2
"""Dots per cell of a braille character; no chart shows more columns than that."""
TICKS = 5
NAME_CELLS = 24
COLORS = (12, 11, 10, 13, 14, 9, 6, 3)
"""Terminal color numbers of the lines, in order."""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

AxisLabel = Callable[[float], str]


def draw_chart(
    output: Output,
    title: str,
    series: Sequence[Series],
    *,
    unit: Callable[[float], str] = number,
    x_label: AxisLabel | None = None,
    y_max: float | None = None,
    y_min: float | None = None,
) -> None:
    """Print one chart as wide as the terminal, without colors if the output is not a terminal.

    Every column shows the minimum and maximum of its samples, so that no spike is lost; gaps and non-
    finite values are left out.
    """
    finite = [_finite(curve) for curve in series]
    shown = [curve for curve in finite if extent([curve])]
    output.data(output.paint(sanitize(title), "strong") + "\n")
    if not shown:
        output.data("  (no data)\n")
        return
    width = output.width_cells or shutil.get_terminal_size((100, HEIGHT_LINES)).columns
    width = max(30, width)
    letters = not output.has_color and len(shown) > 1
    for line in _legend(output, shown, letters, width):
        output.data(line + "\n")
    text = _drawn(shown, width, unit, x_label, (y_min, y_max), letters)
    if not output.has_color:
        text = plain(text)
    output.data("\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n")


def plain(text: str) -> str:
    import plotext  # type: ignore[import-untyped]

    return str(plotext.uncolorize(text))


def _legend(output: Output, series: Sequence[Series], letters: bool, width: int) -> list[str]:
    """Return the names of several curves, each beside its sign, in columns."""
    entries = []
    for index, curve in enumerate(series if len(series) > 1 else ()):
        sign = LETTERS[index % len(LETTERS)] if letters else "━"
        shown = f"\x1b[38;5;{COLORS[index % len(COLORS)]}m{sign}\x1b[0m" if output.has_color else sign
        name = clip(sanitize(curve.name), NAME_CELLS)
        entries.append(f"{shown} {name}" + " " * (NAME_CELLS - cell_width(name)))
    in_a_line = max(1, width // (NAME_CELLS + 4))
    lines = (entries[start : start + in_a_line] for start in range(0, len(entries), in_a_line))
    return ["  ".join(line).rstrip() for line in lines]


def _drawn(
    series: Sequence[Series],
    width: int,
    unit: Callable[[float], str],
    x_label: AxisLabel | None,
    ends: tuple[float | None, float | None],
    letters: bool,
) -> str:
    import plotext

    start, end = min(curve.times[0] for curve in series), max(curve.times[-1] for curve in series)
    if end <= start:
        start, end = start - 1, end + 1
    low, high = _value_ends(series, *ends)
    figure = plotext.figure
    figure.clear()
    figure.theme("simple")
    figure.legend(False)
    figure.plot_size(width, HEIGHT_LINES)
    for index, curve in enumerate(series):
        marker = plotext.marker(
            LETTERS[index % len(LETTERS)] if letters else "braille",
            pixel=plotext.pixel(foreground=COLORS[index % len(COLORS)]),
        )
        for points in _lines(curve, start, end, width * DOTS_PER_CELL):
            xs, ys = zip(*points, strict=True)
            figure.draw(figure.signal(xs, ys, marker=marker).lines())
    across = [start + (end - start) * index / (TICKS - 1) for index in range(TICKS)]
    up = [low + (high - low) * index / (TICKS - 1) for index in range(TICKS)]
    figure.ruler("x").lim(start, end)
    figure.ruler("y").lim(low, high)
    for axis, places, label in (("x", across, x_label or number), ("y", up, unit)):
        formats = (number, *number_formats(places)) if label is number else (label,)
        ticks = labeled(places, formats)
        figure.ruler(axis).ticks([index for index, _ in ticks], [text for _, text in ticks])
    return str(figure.build())


def _value_ends(series: Sequence[Series], y_min: float | None, y_max: float | None) -> tuple[float, float]:
    low, high = extent(series) or (0.0, 1.0)
    low, high = low if y_min is None else min(y_min, low), high if y_max is None else max(y_max, high)
    if low == high:
        return low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    return low, high


def _finite(series: Series) -> Series:
    """Return the curve with gaps in place of infinite values."""
    values = tuple(value if math.isfinite(value) else math.nan for value in series.values)
    return Series(series.name, series.times, values)


def _lines(series: Series, start: float, end: float, columns: int) -> list[list[tuple[float, float]]]:
    """Return the points between gaps: the lowest and the highest of each column."""
    width = (end - start) / columns
    samples = zip(series.times, series.values, strict=True)
    gaps = {int((time - start) / width) for time, value in samples if math.isnan(value)}
    lines: list[list[tuple[float, float]]] = [[]]
    for column, between in enumerate(reduce_columns(series, start, end, columns)):
        if between is not None:
            lines[-1] += [(start + (column + 0.5) * width, value) for value in dict.fromkeys(between)]
        elif column in gaps:
            lines.append([])
    return list(filter(None, lines))


def clock_label(span_s: float, timezone: tzinfo | None = None) -> AxisLabel:
    """Return labels for epoch seconds: the time of day, with the date if the axis is longer than a day."""
    pattern = "%m-%d %H:%M" if span_s > 86_400 else ("%H:%M" if span_s > 600 else "%H:%M:%S")
    return lambda x: datetime.fromtimestamp(x, UTC).astimezone(timezone).strftime(pattern)
