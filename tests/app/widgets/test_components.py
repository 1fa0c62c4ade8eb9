"""Component styles that are made once for each theme, and again when the focus changes."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.widget import Widget

from tui.widgets.charts.line_chart import LineChart
from tui.widgets.components import ComponentsOfTheme


class Lit(ComponentsOfTheme, Widget, can_focus=True):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"lit--lamp"}
    DEFAULT_CSS = "Lit { & > .lit--lamp { color: red; } &:focus > .lit--lamp { color: lime; } }"


class Shows(App[None]):
    def compose(self) -> ComposeResult:
        yield LineChart()
        yield Lit()


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


async def test_component_styles_follow_the_focus() -> None:
    app = Shows()
    async with app.run_test() as pilot:
        lit = app.query_one(Lit)
        colors = []
        for focused in (None, lit, None):
            app.set_focus(focused)
            await pilot.pause()
            colors.append(lit.get_component_styles("lit--lamp").color.rgb)
        assert colors == [(255, 0, 0), (0, 255, 0), (255, 0, 0)]
