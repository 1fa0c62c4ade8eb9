"""Component styles that are made once for each theme, and again when the focus changes."""

from __future__ import annotations

from typing import ClassVar

from textual.widget import Widget
from widget_text import WidgetApp

from tui.widgets.charts.line_chart import LineChart
from tui.widgets.components import CachedComponentStyles


class Lit(CachedComponentStyles, Widget, can_focus=True):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"lit--lamp"}
    DEFAULT_CSS = "Lit { & > .lit--lamp { color: red; } &:focus > .lit--lamp { color: lime; } }"


async def test_component_styles_stay_when_a_class_of_the_screen_changes_and_follow_the_theme() -> None:
    chart = LineChart()
    app = WidgetApp(chart)
    async with app.run_test() as pilot:
        dark = chart.get_component_styles("line-chart--series-0").color
        made = dict(chart._component_styles)
        app.screen.add_class("-other")
        await pilot.pause()
        assert all(made[name] is styles for name, styles in chart._component_styles.items())
        for theme, is_same in (("textual-light", False), ("textual-dark", True)):
            app.theme = theme
            await pilot.pause()
            assert (chart.get_component_styles("line-chart--series-0").color == dark) is is_same


async def test_component_styles_follow_the_focus() -> None:
    lit = Lit()
    app = WidgetApp(lit)
    async with app.run_test() as pilot:
        colors = []
        for focused in (None, lit, None):
            app.set_focus(focused)
            await pilot.pause()
            colors.append(lit.get_component_styles("lit--lamp").color.rgb)
        assert colors == [(255, 0, 0), (0, 255, 0), (255, 0, 0)]
