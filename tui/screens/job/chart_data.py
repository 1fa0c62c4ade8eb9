"""What one chart shows, and the same as plain data for whoever writes it to a file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import Literal

from tui.insight.series import Series, extent
from tui.insight.text import inert
from tui.widgets.charts.spec import ChartSpec


@dataclass(frozen=True, slots=True)
class ChartData:
    """A chart: its samples, how it is drawn, and the unit of its values ("fraction", "bytes", "tok/s" …)."""

    id: str
    series: tuple[Series, ...]
    spec: ChartSpec
    unit: str = ""

    @property
    def has_data(self) -> bool:
        """Whether any series has a sample."""
        return any(series.values for series in self.series)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its series."""
        return tuple(series.name for series in self.series)


@dataclass(frozen=True, slots=True)
class ChartTable:
    """The samples of one chart that are shown.

    ``x`` says what the ``times`` of the series are: epoch seconds ("time") or steps; NaN values are gaps.
    """

    id: str
    title: str
    unit: str
    x: Literal["time", "step"]
    series: tuple[Series, ...]


def table_of(chart: ChartData) -> ChartTable:
    """The chart's samples within its window, without the series that are switched off."""
    start, end = chart.spec.start, chart.spec.end
    kept = []
    for one in chart.series:
        if one.name in chart.spec.hidden:
            continue
        first, last = bisect_left(one.times, start), bisect_right(one.times, end)
        kept.append(Series(one.name, one.times[first:last], one.values[first:last]))
    x: Literal["time", "step"] = "step" if chart.spec.x_axis == "step" else "time"
    return ChartTable(chart.id, chart.spec.title, chart.unit, x, tuple(kept))


def one_a_series(chart: ChartData) -> list[ChartData]:
    """A chart for each series that is not switched off, all on the same scale."""
    shown = [one for one in chart.series if one.name not in chart.spec.hidden]
    found = extent(shown, chart.spec.start, chart.spec.end)
    low, high = found if found is not None else (None, None)
    if found is None or low == high:
        low = high = None
    spec = chart.spec
    return [
        ChartData(
            f"{chart.id}/{one.name}",
            (one,),
            replace(
                spec,
                title=inert(one.name),
                y_min=spec.y_min if spec.y_min is not None or spec.log else low,
                y_max=spec.y_max if spec.y_max is not None else high,
                selected=None,
            ),
            chart.unit,
        )
        for one in shown
    ]
