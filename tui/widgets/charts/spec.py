"""Description of a chart: lines, marks, axes and cursor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tui.analysis.series import Series, extent, latest
from tui.text.units import number
from tui.widgets.charts.ticks import XAxis


@dataclass(frozen=True, slots=True)
class Readout:
    """Numbers of one series, None if missing. ``low`` and ``high`` cover the visible time range.

    ``change`` is the difference from the baseline at the cursor.
    """

    value: float | None
    low: float | None
    high: float | None
    change: float | None = None


def read_series(series: Series, start: float, end: float, cursor: float | None) -> Readout:
    low, high = extent((series,), start, end) or (None, None)
    return Readout(latest(series, end) if cursor is None else value_at(series, cursor), low, high)


def signed(change: float, unit: Callable[[float], str]) -> str:
    return f"{'−' if change < 0 else '+'}{unit(abs(change))}"


def value_at(series: Series, x: float) -> float | None:
    """Return the sample nearest to `x`; None in a gap, or more than one sample interval beyond the ends."""
    times, values = series.times, series.values
    if not times:
        return None
    after = bisect_left(times, x)
    nearest = min(after, len(times) - 1)
    if 0 < after < len(times) and x - times[after - 1] < times[after] - x:
        nearest = after - 1
    ends = times[:2] if after == 0 else times[-2:]
    is_beyond = after in (0, len(times)) and abs(times[nearest] - x) > ends[-1] - ends[0]
    value = values[nearest]
    return None if is_beyond or value != value else value


Role = str | int
"""Role of a piece of a chart: a name such as "title" or "axis", or the index of a series.

In the legend, a hidden series has the role ``-1 - index``; a gray one has ``"crowd-INDEX"``.
"""

Run = tuple[str, Role]
"""A text and its role."""

Line = list[Run]

Tone = Literal["good", "caution", "bad"]


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at ``at`` (in the x axis' unit), shown as one sign on the axis.

    If several fall into one cell, the last one with the most severe tone is shown.
    """

    at: float
    sign: str
    tone: Tone
    text: str = ""


@dataclass(frozen=True, slots=True)
class ChartSpec:
    """Settings for drawing a chart.

    ``start``, ``end``, ``marks`` and ``cursor`` are in the x axis' unit: epoch seconds, or steps. The legend
    shows the values at the cursor, or the newest without one. ``y_min`` and ``y_max`` default to the range
    of the data.

    Attributes:
        least_range: Minimum span of the value axis relative to the largest magnitude; keeps noise small.
        unit: Formats a value with its unit; None for plain numbers.
        tick_base: 2 places ticks at powers of two, for bytes.
        origin: Start of an "elapsed" axis (epoch seconds).
        log: True for a logarithmic value axis; values up to zero are left out.
        smoothing: Weight (0 ≤ w < 1) of the exponential mean drawn over the faint samples; 0 disables it.
        raw: False to leave out the faint samples below smoothed lines, which would cover other lines.
        band: True to draw series without emphasis as a band from lowest to highest, with their median.
        emphasis: Names of the series that findings are about, drawn in the warning color.
        baseline: Name of the series that the others are compared with at the cursor.
        first_color: Color index of the first series, for a chart of a subset of many series.
        leads: True if the lines after the first belong to it, such as the evaluations of a loss.
        shaded: True to shade the area below a single or leading line.
    """

    title: str = ""
    start: float = 0.0
    end: float = 0.0
    y_min: float | None = None
    y_max: float | None = None
    least_range: float = 0.0
    unit: Callable[[float], str] | None = None
    tick_base: Literal[2, 10] = 10
    x_axis: XAxis = "relative"
    origin: float = 0.0
    end_label: str = "now"
    empty_text: str = "no data"
    note: str = ""
    letters: bool = False
    log: bool = False
    smoothing: float = 0.0
    raw: bool = True
    marks: tuple[Mark, ...] = ()
    cursor: float | None = None
    hidden: frozenset[str] = frozenset()
    selected: str | None = None
    band: bool = False
    emphasis: frozenset[str] = frozenset()
    baseline: str = ""
    first_color: int = 0
    leads: bool = False
    shaded: bool = False

    def exact(self, value: float) -> str:
        """Format a value for the cursor: a plain number, such as a loss, gets five digits."""
        return number(value, 5) if self.unit in (None, number) else self.unit(value)
