"""Lines that are so restless that they fill a band: the band lightly, and its mean as the line.

The band keeps the lowest and the highest sample of every dot column, so no spike is lost; its inside is
dotted, so that it differs from a line without colour too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import floor, isinf

from tui.insight.series import Series
from tui.widgets.charts.braille import Grid, Span

BAND_LINES = 3
"""Bands of more lines than that would cover each other."""

LEAST_DOTS = 2.0
"""A line that is so many dots thick on average is a band."""

MEAN_COLUMNS = 2
"""The mean is that of a dot column and so many on either side."""

_EVEN = int("5" * 256, 16)  # more bits than any chart has rows of dots
_ODD = _EVEN << 1


def is_band(spans: Sequence[Span], dot_rows: int, bottom: float, top: float) -> bool:
    """Whether a line is as thick as a band between those ends of the value axis."""
    if not spans or top <= bottom:
        return False
    thick = sum(min(high, top) - max(low, bottom) for _, low, high, _, _, _ in spans if high > low)
    return thick / (top - bottom) * (dot_rows - 1) >= LEAST_DOTS * len(spans)


def dotted(bits: dict[int, int], grid: Grid) -> dict[int, int]:
    """The dot columns with every other dot inside, and all of their ends."""
    found: dict[int, int] = {}
    for column, dots in bits.items():
        ends = 1 << dots.bit_length() - 1 | (dots & -dots)
        found[column] = dots & (_ODD if (column + grid.first) & 1 else _EVEN) | ends
    return found


def mean_spans(series: Series, grid: Grid) -> list[Span]:
    """The mean of the samples around each dot column. Gaps stay gaps; infinities do not move it."""
    means: list[Span] = []
    for run in _runs(series, grid):
        sums, counts = [0.0], [0]
        for _, total, count in run:
            sums.append(sums[-1] + total)
            counts.append(counts[-1] + count)
        first = last = 0
        for place, (column, _, _) in enumerate(run):
            while run[first][0] < column - MEAN_COLUMNS:
                first += 1
            while last < len(run) and run[last][0] <= column + MEAN_COLUMNS:
                last += 1
            mean = (sums[last] - sums[first]) / (counts[last] - counts[first])
            means.append((column, mean, mean, mean, mean, place > 0))
    return means


def _runs(series: Series, grid: Grid) -> list[list[tuple[int, float, int]]]:
    """Column, sum and count of its samples, in stretches without a gap."""
    times, values = series.times, series.values
    begin = bisect_left(times, grid.place(-MEAN_COLUMNS))
    end = bisect_left(times, grid.place(grid.columns))
    runs: list[list[tuple[int, float, int]]] = []
    run: list[tuple[int, float, int]] = []
    column: int | None = None
    total, count = 0.0, 0
    for time_s, value in zip(times[begin:end], values[begin:end], strict=True):
        if isinf(value):
            continue
        here = floor(time_s * grid.per_second) - grid.first
        if here != column or value != value:
            if column is not None and count:
                run.append((column, total, count))
            column, total, count = here, 0.0, 0
        if value != value:  # a gap
            if run:
                runs.append(run)
            run, column = [], None
            continue
        total += value
        count += 1
    if column is not None and count:
        run.append((column, total, count))
    if run:
        runs.append(run)
    return runs
