"""Component styles that are made once for each theme."""

from __future__ import annotations

from textual.app import App, ComposeResult

from tui.widgets.charts.line_chart import LineChart


class Shows(App[None]):
    def compose(self) -> ComposeResult:
        yield LineChart()


async def test_component_styles_stay_when_a_class_of_the_screen_changes_and_follow_the_theme() -> None:
    app = Shows()
    async with app.run_test() as pilot:
        chart = app.query_one(LineChart)
        dark = chart.get_component_styles("line-chart--series-0").color
        made = dict(chart._component_styles)
        app.screen.add_class("-other")
        await pilot.pause()
        assert all(made[name] is styles for name, styles in chart._component_styles.items())
        app.theme = "textual-light"
        await pilot.pause()
        assert chart.get_component_styles("line-chart--series-0").color != dark
        app.theme = "textual-dark"
        await pilot.pause()
        assert chart.get_component_styles("line-chart--series-0").color == dark
