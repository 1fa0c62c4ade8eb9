"""The chart widget shows its data, and paints only what changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.geometry import Region
from widget_text import WidgetApp, full_lines, shown

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


async def test_data_before_and_after_mounting_is_shown() -> None:
    chart = LineChart(ChartSpec("GPU utilisation", unit=percent, y_min=0, y_max=1))
    show(chart, wave("node-0"))
    async with WidgetApp(chart).run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert "50 %" in shown(chart)[0]
        show(chart, wave("node-0", 0.75))
        await pilot.pause()
        assert "75 %" in shown(chart)[0]
        assert shown(chart)[-1].split()[-1] == "now"


async def test_no_data_has_its_own_look() -> None:
    chart = LineChart(ChartSpec("loss", empty_text="no loss in the log yet"))
    async with WidgetApp(chart).run_test(size=SIZE):
        assert any("no loss in the log yet" in line for line in shown(chart))


async def test_only_changed_lines_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = LineChart(ChartSpec("GPU", unit=percent, y_min=0, y_max=1))
    show(chart, wave("node-0"))
    async with WidgetApp(chart).run_test(size=SIZE) as pilot:
        await pilot.pause()
        full_lines(chart)
        painted: list[Region] = []
        original = chart.refresh

        def refresh(*regions: Region, **options: bool) -> LineChart:
            painted.extend(regions or [chart.size.region])
            return original(*regions, **options)

        monkeypatch.setattr(chart, "refresh", refresh)
        show(chart, wave("node-0"))  # equal, not the same object
        assert painted == []
        show(chart, wave("node-0", 0.52))
        assert 0 < len(painted) <= 4
        assert all(region.height == 1 for region in painted)


async def test_resizing_from_large_to_tiny_keeps_it_usable() -> None:
    chart = LineChart(ChartSpec("GPU", unit=percent, y_min=0, y_max=1))
    show(chart, wave("node-0"))
    async with WidgetApp(chart).run_test(size=(100, 30)) as pilot:
        for size in ((20, 4), (15, 3), (30, 1), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert "50 %" in "\n".join(full_lines(chart))


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_series_have_colours_of_their_own_in_every_theme(theme: str) -> None:
    chart = LineChart(ChartSpec("GPU", y_min=0, y_max=1))
    app = WidgetApp(chart)
    async with app.run_test(size=SIZE) as pilot:
        app.theme = theme
        show(chart, *(wave(f"node-{index}") for index in range(3)))
        await pilot.pause()
        header = chart.render_line(0)
        colours = {
            segment.style.color for segment in header if segment.style and segment.text.startswith("━")
        }
        assert len(colours) == 3


async def test_a_new_theme_changes_the_colours_at_once() -> None:
    chart = LineChart(ChartSpec("GPU", y_min=0, y_max=1))
    show(chart, wave("node-0"), wave("node-1"))
    app = WidgetApp(chart)

    def colours() -> set[object]:
        return {segment.style.color for segment in chart.render_line(0) if segment.style}

    async with app.run_test(size=SIZE) as pilot:
        app.theme = "textual-dark"
        await pilot.pause()
        dark = colours()
        app.theme = "textual-light"
        await pilot.pause()
        assert colours().isdisjoint(dark)


async def test_the_note_is_at_the_right_of_the_title() -> None:
    chart = LineChart(ChartSpec("GPU", y_min=0, y_max=1, note="now nan"))
    show(chart, wave("node-0"), wave("node-1"))
    async with WidgetApp(chart).run_test(size=SIZE):
        assert shown(chart)[0].endswith("now nan")


async def test_no_color_puts_letters_on_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    chart = LineChart(ChartSpec("GPU", y_min=0, y_max=1))
    show(chart, wave("node-0"), wave("node-1"))
    async with WidgetApp(chart).run_test(size=SIZE):
        assert "A node-0" in shown(chart)[0]
        assert any("A" in line for line in shown(chart)[1:-1])
