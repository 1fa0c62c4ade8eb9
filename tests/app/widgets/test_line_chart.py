"""The chart widget shows its data, and paints only what changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.events import Leave
from widget_text import WidgetApp, shown

from tui.analysis.series import Series
from tui.text.units import percent
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.charts.spec import ChartSpec

END = 1_700_000_000.0
SPAN_S = 1800.0
SIZE = (60, 14)


def wave(name: str, last: float = 0.5) -> Series:
    times = tuple(END - SPAN_S + 30.0 * index for index in range(61))
    return Series(name, times, (*(0.4 + 0.01 * (index % 7) for index in range(60)), last))


def show(chart: LineChart, *series: Series, end: float = END) -> None:
    chart.show(series, replace(chart.spec, start=end - SPAN_S, end=end))


async def test_the_pointer_reads_values_until_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = LineChart(ChartSpec("GPU", unit=percent, y_min=0, y_max=1))
    show(chart, wave("node-0", 0.9))
    async with WidgetApp(chart).run_test(size=SIZE) as pilot:
        await pilot.hover(chart, offset=(30, 5))
        assert "90 %" not in shown(chart)[0].split("…")[0]
        drawn = chart._picture()
        await pilot.hover(chart, offset=(30, 6))
        assert chart._picture() is drawn
        chart.post_message(Leave(chart))
        await pilot.pause()
        assert "90 %" in shown(chart)[0].split("…")[0]


async def test_no_color_puts_letters_on_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    chart = LineChart(ChartSpec("GPU", y_min=0, y_max=1))
    show(chart, wave("node-0"), wave("node-1"))
    async with WidgetApp(chart).run_test(size=SIZE):
        assert "A node-0" in shown(chart)[0]
        assert any("A" in line for line in shown(chart)[1:-1])
