"""Settings of a chart: axes, marks of events, cursor, how series are drawn; and reading values of series."""

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
    """The values of a series in the legend; None if a value is missing.

    Attributes:
        value: The value at the cursor; without a cursor, the newest.
        low: The lowest value in the visible range of the x axis.
        high: The highest value in the visible range of the x axis.
        change: Difference from the baseline series at the cursor.
    """

    value: float | None
    low: float | None
    high: float | None
    change: float | None = None


def read_series(series: Series, start: float, end: float, cursor: float | None) -> Readout:
    """Return the values of a series for the legend, for the visible range from ``start`` to ``end``."""
    low, high = extent((series,), start, end) or (None, None)
    return Readout(latest(series, end) if cursor is None else value_at(series, cursor), low, high)


def signed(change: float, unit: Callable[[float], str]) -> str:
    """Format a difference of values with its sign, also if it is positive."""
    return f"{'−' if change < 0 else '+'}{unit(abs(change))}"


def value_at(series: Series, x: float) -> float | None:
    """Return the value of the sample nearest to ``x``.

    Return None if that sample is a gap (NaN), or if ``x`` is more than a sample interval before the first or
    after the last sample.
    """
    times, values = series.times, series.values
    if not times:
        return None
    next_index = bisect_left(times, x)
    nearest_index = min(next_index, len(times) - 1)
    if 0 < next_index < len(times) and x - times[next_index - 1] < times[next_index] - x:
        nearest_index = next_index - 1
    end_times = times[:2] if next_index == 0 else times[-2:]
    is_too_far = (
        next_index in (0, len(times)) and abs(times[nearest_index] - x) > end_times[-1] - end_times[0]
    )
    value = values[nearest_index]
    return None if is_too_far or value != value else value


Role = str | int
"""The part of a chart that a run of characters belongs to; it determines the style of the run.

A role is a name such as "title" or "axis", or the index of a series. In the legend, a hidden series has the
role ``-1 - index``, and a series that is drawn in gray has ``"gray-INDEX"``. Areas and bands: see
``raster.AREA``.
"""

Run = tuple[str, Role]
"""A run of characters with the same role."""

Line = list[Run]
"""A screen line of a chart."""

Tone = Literal["good", "caution", "bad"]


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at position ``at`` of the x axis, shown there as ``sign``; ``text`` is shown at the cursor.

    If several marks are in the same cell, only one of the most severe tone is shown: the last.
    """

    at: float
    sign: str
    tone: Tone
    text: str = ""


@dataclass(frozen=True, slots=True)
class ChartSpec:
    """Settings for drawing a chart.

    Positions on the x axis are epoch seconds, or steps if ``x_axis`` is "step".

    Attributes:
        start: Left edge of the visible range of the x axis.
        end: Right edge of the visible range of the x axis.
        y_min: Bottom of the value axis; None to derive it from the data.
        y_max: Top of the value axis; None to derive it from the data.
        min_relative_range: Minimum length of the value axis relative to the largest absolute value, so that
            noise does not fill the chart.
        unit: Formats a value with its unit; None for plain numbers.
        tick_base: 2 to place ticks at powers of two, for bytes.
        origin: Start of an "elapsed" axis (epoch seconds).
        end_label: Label at the right end of a "relative" axis.
        empty_text: Shown if the series have no values.
        note: Text on the right of the header, such as a warning.
        has_letters: True to mark each line with a letter, for terminals without color.
        is_logarithmic: True for a logarithmic value axis, which leaves out values of zero or less.
        smoothing: Weight (0 ≤ w < 1) of the exponential moving average that is drawn as the line; 0 for none.
        shows_samples: False to hide the samples behind smoothed lines, which would cover other lines.
        cursor: Position whose values the legend shows; None for the newest values.
        hidden: Names of series that are not drawn; the legend lists them.
        selected: Name of the series that is drawn on top, in color.
        has_band: True to draw series that are neither selected nor emphasized as one band, with their median.
        emphasis: Names of the series that findings are about, drawn in the warning color.
        baseline: Name of the series that the others are compared with at the cursor.
        first_color: Color index of the first series, for a chart of a subset of many series.
        has_main_line: True if the first series is the main one and the others belong to it, such as a loss
            and its evaluations.
        is_shaded: True to shade the area below a line that is alone or the main line.
    """

    title: str = ""
    start: float = 0.0
    end: float = 0.0
    y_min: float | None = None
    y_max: float | None = None
    min_relative_range: float = 0.0
    unit: Callable[[float], str] | None = None
    tick_base: Literal[2, 10] = 10
    x_axis: XAxis = "relative"
    origin: float = 0.0
    end_label: str = "now"
    empty_text: str = "no data"
    note: str = ""
    has_letters: bool = False
    is_logarithmic: bool = False
    smoothing: float = 0.0
    shows_samples: bool = True
    marks: tuple[Mark, ...] = ()
    cursor: float | None = None
    hidden: frozenset[str] = frozenset()
    selected: str | None = None
    has_band: bool = False
    emphasis: frozenset[str] = frozenset()
    baseline: str = ""
    first_color: int = 0
    has_main_line: bool = False
    is_shaded: bool = False

    def exact(self, value: float) -> str:
        """Format a value at the cursor; without a unit (such as a loss), with five significant digits."""
        return number(value, 5) if self.unit in (None, number) else self.unit(value)
