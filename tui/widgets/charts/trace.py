"""A series as one row of block characters, for tables and headers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

BLOCKS = "▁▂▃▄▅▆▇█"
"""Eight heights of a cell."""

GAP = "·"
"""What an unknown value looks like."""


def block(value: float | None, low: float = 0.0, high: float = 1.0) -> str:
    """The block character whose height shows a value between `low` and `high`; `·` when it is unknown."""
    if value is None or isnan(value):
        return GAP
    if high <= low:
        return BLOCKS[len(BLOCKS) // 2]
    share = (value - low) / (high - low)
    return BLOCKS[min(len(BLOCKS) - 1, max(0, int(min(max(share, 0.0), 1.0) * len(BLOCKS))))]


def trace(
    values: Sequence[float | None],
    cells: int,
    *,
    low: float | None = None,
    high: float | None = None,
) -> str:
    """A row of at most `cells` block characters: each shows the mean of its share of the values.

    Without fixed ends the row spans the values' own range. Unknown values (None, NaN) are `·`. Fewer
    values than cells give a shorter row; no values give an empty one.
    """
    count = len(values)
    if cells <= 0 or not count:
        return ""
    known = [value for value in values if value is not None and isfinite(value)]
    bottom = low if low is not None else min(known, default=0.0)
    top = high if high is not None else max(known, default=1.0)
    columns = min(cells, count)
    row = []
    for column in range(columns):
        share = values[column * count // columns : (column + 1) * count // columns]
        present = [value for value in share if value is not None and not isnan(value)]
        row.append(block(sum(present) / len(present) if present else None, bottom, top))
    return "".join(row)
