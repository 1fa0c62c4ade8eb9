"""A series as one row of block characters, for tables and headers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from math import isfinite, isnan
from typing import Literal

from tui.analysis.series import Series, latest
from tui.widgets.charts.braille import value_range
from tui.widgets.charts.ticks import XAxis

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


@dataclass(frozen=True, slots=True)
class Readout:
    """One series' numbers; None where there is none. ``low`` and ``high`` are of the window."""

    value: float | None
    low: float | None
    high: float | None


def read(series: Series, start: float, end: float, cursor: float | None) -> Readout:
    """The value at the cursor (or the newest in the window), and the window's extremes."""
    found = value_range(series, start, end)
    low, high = found if found is not None else (None, None)
    return Readout(_newest(series, end) if cursor is None else value_at(series, cursor), low, high)


def value_at(series: Series, x: float) -> float | None:
    """The sample nearest to a place; None in a gap, and beyond the ends by more than a usual distance."""
    times, values = series.times, series.values
    if not times:
        return None
    after = bisect_left(times, x)
    if after == 0 or after == len(times):
        at = 0 if after == 0 else len(times) - 1
        usual = (
            times[1] - times[0]
            if after == 0 and len(times) > 1
            else times[-1] - times[-2]
            if len(times) > 1
            else 0.0
        )
        value = values[at]
        return value if value == value and abs(times[at] - x) <= usual else None
    before = after - 1
    nearest = before if x - times[before] < times[after] - x else after
    value = values[nearest]
    return value if value == value else None


def _newest(series: Series, end: float) -> float | None:
    """The newest value up to the window's right edge."""
    stop = bisect_right(series.times, end)
    if stop == len(series.times):
        return latest(series)
    for position in range(stop - 1, -1, -1):
        value = series.values[position]
        if value == value:
            return value
    return None


Role = str | int
"""What a piece of a chart is: a name such as "title" or "axis", or a series by its number.

A series that is switched off has the role ``-1 - number`` in the legend.
"""

Run = tuple[str, Role]
"""A piece of a line and what it is."""

Line = list[Run]

Tone = Literal["good", "caution", "bad"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at ``at`` (in the x axis' unit), shown as one sign on the axis.

    Of several in one cell the last of the worst tone is shown.
    """

    at: float
    sign: str
    tone: Tone
    text: str = ""


@dataclass(frozen=True, slots=True)
class ChartSpec:
    """How a chart is drawn.

    Attributes:
        title: what it shows.
        start: the window's left edge, in the x axis' unit (epoch seconds, or steps).
        end: its right edge.
        y_min: the lower end of the value axis; chosen from the data when None.
        y_max: the upper end likewise.
        unit: turns a value into text.
        tick_base: 2 makes ticks powers of two, for bytes.
        x_axis: what the x axis is labelled with.
        origin: where an "elapsed" axis begins (epoch seconds).
        end_label: what the right edge is called on a relative axis.
        timezone: for clock labels; the machine's own when None.
        empty_text: what to say where there is no sample.
        note: a remark at the right of the header.
        letters: series carry letters, as there are no colours.
        log: the value axis is logarithmic; values up to zero are left out.
        smoothing: weight (0 ≤ w < 1) of the exponential mean drawn over the faint samples; 0 is none.
        marks: what happened, on the x axis.
        cursor: where values are read (x), or None for the newest ones.
        hidden: names of the series that are switched off.
        selected: the name of the series that lies on top.
        emphasis: names of the series that stand out where there are too many for colours.
        first_colour: number of the first series' colour, for a chart of some series of many.
    """

    title: str = ""
    start: float = 0.0
    end: float = 0.0
    y_min: float | None = None
    y_max: float | None = None
    unit: Callable[[float], str] | None = None
    tick_base: Literal[2, 10] = 10
    x_axis: XAxis = "relative"
    origin: float = 0.0
    end_label: str = "now"
    timezone: tzinfo | None = None
    empty_text: str = "no data yet"
    note: str = ""
    letters: bool = False
    log: bool = False
    smoothing: float = 0.0
    marks: tuple[Mark, ...] = ()
    cursor: float | None = None
    hidden: frozenset[str] = frozenset()
    selected: str | None = None
    emphasis: frozenset[str] = frozenset()
    first_colour: int = 0
