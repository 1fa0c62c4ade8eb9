"""Rasterize series into braille dots, with exact extremes, in a few milliseconds for eight series.

A cell holds 2 × 4 dots. A series is first reduced to one span per dot column: from the lowest to the highest
value there, so that no spike is lost. Each dot column then becomes an integer whose bits are dots (bit 0 is
the lowest), so that drawing a span is one shift. Finally, pairs of columns become braille characters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import floor, isfinite

from tui.analysis.series import Series

DOTS_PER_CELL_X = 2
DOTS_PER_CELL_Y = 4

ColumnSpan = tuple[int, float, float, float, float, bool]
"""The values of a series in one dot column.

The dot column; the lowest, highest, first and last value; True if a line joins the span to the previous one.
"""

Cells = dict[int, str]
"""Braille characters by cell index. Cells are counted row by row from the top left."""

_LEFT = (0x40, 0x04, 0x02, 0x01)  # the bits of a character for its left dots, bottom to top
_RIGHT = (0x80, 0x20, 0x10, 0x08)
CHARACTERS = [
    chr(0x2800 + sum(_LEFT[row] * (left >> row & 1) + _RIGHT[row] * (right >> row & 1) for row in range(4)))
    for left in range(16)
    for right in range(16)
]
"""Braille characters by their dots: ``left << 4 | right``, four bits per column, bit 0 the lowest dot."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Maps times (or steps) to dot columns.

    Columns begin at whole multiples of the column width, not at the edge of the time range. So when a live
    chart scrolls, samples stay in their columns, and the picture shifts instead of flickering.

    Attributes:
        first: Number of the first column, counted from time 0.
        columns: Number of columns.
        per_second: Columns per second (or per step).
    """

    first: int
    columns: int
    per_second: float

    @classmethod
    def over(cls, start: float, end: float, columns: int) -> Grid:
        """Return a grid of ``columns`` dot columns whose last column contains ``end``."""
        span_s = max(end - start, 1e-9)
        per_second = columns / span_s
        return cls(floor(end * per_second) - columns + 1, columns, per_second)

    def time_at(self, column: int) -> float:
        return (self.first + column) / self.per_second

    def column(self, time_s: float) -> int:
        """Return the dot column of a time; outside of 0 … columns-1 if the time is out of range."""
        return floor(time_s * self.per_second) - self.first


def reduce_to_spans(series: Series, grid: Grid) -> list[ColumnSpan]:
    """Return a span for each dot column with samples, in order, and for the nearest sample on either side.

    The samples outside of the grid are needed for the lines to its edges. NaN is a gap: the columns on its
    two sides are not joined. Infinite values are retained, and drawn at the edge.
    """
    times, values = series.times, series.values
    per_second, first = grid.per_second, grid.first
    begin = bisect_left(times, first / per_second)
    end = bisect_left(times, (first + grid.columns) / per_second)
    begin = max(0, begin - 1)
    end = min(len(times), end + 1)
    spans: list[ColumnSpan] = []
    append = spans.append
    current_column: int | None = None
    low = high = opening = closing = 0.0
    joined = pending_join = False
    for time_s, value in zip(times[begin:end], values[begin:end], strict=True):
        if value != value:  # NaN
            pending_join = False
            continue
        column = floor(time_s * per_second) - first
        if column == current_column:
            if value < low:
                low = value
            elif value > high:
                high = value
        else:
            if current_column is not None:
                append((current_column, low, high, opening, closing, joined))
            current_column = column
            low = high = opening = value
            joined = pending_join
        closing = value
        pending_join = True
    if current_column is not None:
        append((current_column, low, high, opening, closing, joined))
    return spans


def dot_columns(
    spans: Sequence[ColumnSpan], columns: int, dot_rows: int, bottom: float, top: float
) -> dict[int, int]:
    """Return the dots of every non-empty dot column as bits; bit 0 is the lowest dot.

    ``bottom`` and ``top`` are the ends of the value axis; values beyond them are drawn at the edge. An
    isolated value is drawn as two by two dots, because a single dot is easy to miss.
    """
    scale = (dot_rows - 1) / (top - bottom) if top > bottom else 0.0
    last_row = dot_rows - 1

    def row_of(value: float) -> int:
        if value >= top:
            return last_row if top > bottom else last_row // 2
        if value <= bottom:
            return 0
        return int((value - bottom) * scale + 0.5)

    bits: dict[int, int] = {}
    previous_column = previous_row = 0
    is_isolated = False
    for column, low, high, opening, closing, joined in spans:
        low_row = high_row = row_of(low)
        if low != high:
            high_row = row_of(high)
        opening_row = low_row if opening == low else high_row if opening == high else row_of(opening)
        closing_row = low_row if closing == low else high_row if closing == high else row_of(closing)
        if is_isolated and not joined:
            _draw_spot(bits, previous_column, previous_row, columns, last_row)
        is_isolated = not joined
        if joined and column > previous_column + 1:
            _draw_join(bits, previous_column, previous_row, column, opening_row, columns)
        # Most columns are adjacent: joining them here, without _draw_join, makes a chart a fifth faster.
        elif joined and opening_row > previous_row + 1:
            low_row = min(low_row, previous_row + 1)
        elif joined and opening_row < previous_row - 1:
            high_row = max(high_row, previous_row - 1)
        if 0 <= column < columns:
            bits[column] = bits.get(column, 0) | ((1 << (high_row - low_row + 1)) - 1) << low_row
        previous_column, previous_row = column, closing_row
    if is_isolated:
        _draw_spot(bits, previous_column, previous_row, columns, last_row)
    return bits


def _draw_spot(bits: dict[int, int], column: int, row: int, columns: int, last_row: int) -> None:
    """Draw two by two dots, at the left edge if ``column`` is -1."""
    if -1 <= column < columns and last_row:
        left = max(0, min(column, columns - 2))
        two_dots = 0b11 << min(row, last_row - 1)
        for dot_column in range(left, min(left + 2, columns)):
            bits[dot_column] = bits.get(dot_column, 0) | two_dots


def _draw_join(
    bits: dict[int, int], from_column: int, from_row: int, to_column: int, to_row: int, columns: int
) -> None:
    """Draw a straight line between two dots that are several columns apart, without gaps between its dots."""
    slope = (to_row - from_row) / (to_column - from_column)
    start = max(from_column + 1, 0)
    previous_row = round(from_row + slope * (start - 1 - from_column))
    for column in range(start, min(to_column + 1, columns)):
        row = round(from_row + slope * (column - from_column))
        low, high = min(row, previous_row + 1), max(row, previous_row - 1)
        bits[column] = bits.get(column, 0) | ((1 << (high - low + 1)) - 1) << low
        previous_row = row


def cells(bits: dict[int, int], width: int, rows: int) -> Cells:
    """Convert dot columns to the braille characters of a raster of ``width`` × ``rows`` cells."""
    characters: Cells = {}
    bottom = (rows - 1) * width
    get = bits.get
    for cell_column in sorted({column >> 1 for column in bits}):
        left = get(2 * cell_column, 0)
        right = get(2 * cell_column + 1, 0)
        both = left | right
        lowest = ((both & -both).bit_length() - 1) >> 2
        highest = (both.bit_length() - 1) >> 2
        for row in range(lowest, highest + 1):
            shift = row << 2
            code = (left >> shift & 15) << 4 | (right >> shift & 15)
            if code:
                characters[bottom - row * width + cell_column] = CHARACTERS[code]
    return characters


@lru_cache(maxsize=256)
def small_curve(values: tuple[float | None, ...], width: int) -> str:
    """Draw values as a curve of braille dots in one row of ``width`` cells, scaled to their range."""
    # Ignore the first eighth for the range: a loss falls steeply at first and would flatten the rest.
    scaling_values = values[len(values) // 8 :] or values
    finite_values = [value for value in scaling_values if value is not None and isfinite(value)]
    points = [(float(index), value) for index, value in enumerate(values) if value is not None]
    series = Series("", tuple(index for index, _ in points), tuple(value for _, value in points))
    columns = width * DOTS_PER_CELL_X
    spans = reduce_to_spans(series, Grid(0, columns, columns / max(1, len(values))))
    bits = dot_columns(
        spans, columns, DOTS_PER_CELL_Y, min(finite_values, default=0.0), max(finite_values, default=0.0)
    )
    row = [" "] * width
    for column, character in cells(bits, width, 1).items():
        row[column] = character
    return "".join(row)
