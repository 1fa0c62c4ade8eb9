"""Chart controls shared by all screens: keys, mouse, and the field that filters charts by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual import on
from textual.message_pump import MessagePump

from tui.analysis.series import next_smoothing
from tui.screens.charts.grid import ChartGrid
from tui.screens.charts.view import next_length, with_cursor_moved
from tui.screens.filter_field import FilterField
from tui.widgets.charts.line_chart import LineChart, Panned, Pointed, SeriesClicked, Zoomed
from tui.widgets.charts.ticks import Window, XAxis

WHOLE_RANGE_TEXT = "The whole run is shown."


class ChartControls(MessagePump):
    """Mixin for a screen or pane with charts, which must have a reactive ``view``, a `ChartView`."""

    # A MessagePump, not a Widget: Textual takes CSS only from the first base that is a widget.
    view: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.grid = ChartGrid(id="charts")
        self.chart_filter = FilterField(
            "words in a chart's name, e.g. reward", id="chart-filter", stays_open=True
        )

    def full_range(self) -> tuple[float, float] | None:
        """Return the range that can be shown at most, such as the whole run; None before it is known."""
        raise NotImplementedError

    @property
    def range_axis(self) -> XAxis:
        """The kind of axis that visible ranges refer to; its unit is seconds, or steps."""
        return "clock"

    def show_window(self, window: Window, *, at_once: bool = True) -> None:
        """Show this range; ``at_once`` is False if more changes may follow soon, such as while dragging."""
        self.view = replace(self.view, window=window)

    def set_cursor(self, x: float) -> None:
        """Show the values at `x`, a position on `range_axis`, on all charts."""
        self.view = replace(self.view, cursor=x)

    def to_range_unit(self, chart: LineChart, x: float) -> float:
        """Convert a position on the axis of a chart to a position on `range_axis`."""
        return x

    def take_focus(self) -> None:
        raise NotImplementedError

    # The mouse

    @on(Zoomed)
    def _zoomed(self, message: Zoomed) -> None:
        full_range = self.full_range()
        if full_range is not None:
            around = None if message.around is None else self.to_range_unit(message.chart, message.around)
            self.show_window(self.view.window.zoomed(message.factor, around, *full_range), at_once=False)

    @on(Panned)
    def _panned(self, message: Panned) -> None:
        spec = message.chart.spec
        self.action_pan(message.by / (spec.end - spec.start))

    @on(Pointed)
    def _pointed(self, message: Pointed) -> None:
        self.set_cursor(self.to_range_unit(message.chart, message.x))

    @on(SeriesClicked)
    def _series_clicked(self, message: SeriesClicked) -> None:
        self.view = replace(self.view, hidden=self.view.hidden ^ {message.name})

    # Actions

    @on(FilterField.Changed)
    def _filter_changed(self, message: FilterField.Changed) -> None:
        self.grid.filter_text = message.value

    @on(FilterField.Submitted)
    def _filter_submitted(self) -> None:
        self.take_focus()

    def action_filter_charts(self) -> None:
        self.chart_filter.open()

    def action_next_chart(self) -> None:
        self.grid.show_next()

    def action_smoothing(self) -> None:
        self.view = replace(self.view, smoothing=next_smoothing(self.view.smoothing))

    def action_toggle_in_view(self, option: str) -> None:
        self.view = replace(self.view, **{option: not getattr(self.view, option)})

    def action_zoom(self, step: int) -> None:
        full_range = self.full_range()
        if full_range is not None:
            window = next_length(self.view, step, full_range, self.range_axis)
            if window == self.view.window:
                self.app.notify("There is no shorter range." if step > 0 else WHOLE_RANGE_TEXT)
            self.show_window(window)

    def action_pan(self, fraction: float) -> None:
        full_range = self.full_range()
        if full_range is not None:
            start, end = self.view.window.bounds(*full_range)
            self.show_window(self.view.window.panned(fraction * (end - start), *full_range), at_once=False)

    def action_move_cursor(self, cells: int) -> None:
        full_range = self.full_range()
        if full_range is not None and self.grid.front_chart is not None:
            view = with_cursor_moved(self.view, cells, self.grid.raster_cells, full_range)
            self.show_window(view.window, at_once=False)
            if view.cursor is not None:
                self.set_cursor(view.cursor)
