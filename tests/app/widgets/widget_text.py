"""Helpers of the widget tests: an app around one widget, and what a widget shows as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.widget import Widget

from tui.analysis.series import Series
from tui.widgets.charts.picture import draw_picture
from tui.widgets.charts.spec import ChartSpec, Line


class WidgetApp(App[None]):
    """An app that shows one widget and keeps the messages that it is asked to."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


def shown(widget: Widget) -> list[str]:
    """The widget's lines as they are on the screen, without trailing spaces."""
    return [line.rstrip() for line in full_lines(widget)]


def full_lines(widget: Widget) -> list[str]:
    """The widget's lines as they are on the screen; each is as wide as the widget, or the room in it."""
    lines = [widget.render_line(y).text for y in range(widget.size.height)]
    widths = {widget.size.width}, {widget.scrollable_content_region.width}
    assert {cell_len(line) for line in lines} in widths
    return lines


def draw(series: Sequence[Series], spec: ChartSpec, width: int, height: int) -> list[Line]:
    return draw_picture(series, spec, width, height).lines
