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

WHOLE_RANGE = "The whole run is shown."


class ChartControls(MessagePump):
    """Mixin for the screen or pane that shows charts; its reactive ``view`` is their `ChartView`."""

    # A MessagePump, not a Widget: Textual takes CSS only from the first base that is a widget.
    view: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.grid = ChartGrid(id="charts")
        self.chart_filter = FilterField("words in the name of a chart: reward", id="chart-filter", stays=True)

    def reach(self) -> tuple[float, float] | None:
        """Return the limits of the visible range; None before they are known."""
        raise NotImplementedError

    @property
    def axis_of_range(self) -> XAxis:
        return "clock"

    def show_window(self, window: Window, *, at_once: bool = True) -> None:
        """Show this range; ``at_once`` is False if more changes may follow soon, as while dragging."""
        self.view = replace(self.view, window=window)

    def read_at(self, x: float) -> None:
        self.view = replace(self.view, cursor=x)

    def to_range_unit(self, chart: LineChart, x: float) -> float:
        """Convert `x` on a chart's axis to the unit of the range."""
        return x

    def take_focus(self) -> None:
        raise NotImplementedError

    # The mouse

    @on(Zoomed)
    def _zoomed(self, message: Zoomed) -> None:
        reach = self.reach()
        if reach is not None:
            around = None if message.around is None else self.to_range_unit(message.chart, message.around)
            self.show_window(self.view.window.zoomed(message.factor, around, *reach), at_once=False)

    @on(Panned)
    def _panned(self, message: Panned) -> None:
        spec = message.chart.spec
        self.action_pan(message.by / (spec.end - spec.start))

    @on(Pointed)
    def _pointed(self, message: Pointed) -> None:
        self.read_at(self.to_range_unit(message.chart, message.x))

    @on(SeriesClicked)
    def _series_clicked(self, message: SeriesClicked) -> None:
        self.view = replace(self.view, hidden=self.view.hidden ^ {message.name})

    # Actions

    @on(FilterField.Changed)
    def _filter_changed(self, message: FilterField.Changed) -> None:
        self.grid.text = message.value

    @on(FilterField.Submitted)
    def _filter_submitted(self) -> None:
        self.take_focus()

    def action_filter_charts(self) -> None:
        self.chart_filter.open()

    def action_next_chart(self) -> None:
        self.grid.next()

    def action_smoothing(self) -> None:
        self.view = replace(self.view, smoothing=next_smoothing(self.view.smoothing))

    def action_toggle_in_view(self, option: str) -> None:
        self.view = replace(self.view, **{option: not getattr(self.view, option)})

    def action_zoom(self, by: int) -> None:
        reach = self.reach()
        if reach is not None:
            window = next_length(self.view, by, reach, self.axis_of_range)
            if window == self.view.window:
                self.app.notify("There is no shorter range." if by > 0 else WHOLE_RANGE)
            self.show_window(window)

    def action_pan(self, share: float) -> None:
        reach = self.reach()
        if reach is not None:
            start, end = self.view.window.bounds(*reach)
            self.show_window(self.view.window.panned(share * (end - start), *reach), at_once=False)

    def action_move_cursor(self, cells: int) -> None:
        reach = self.reach()
        if reach is not None and self.grid.front_chart is not None:
            view = with_cursor_moved(self.view, cells, self.grid.raster_cells, reach)
            self.show_window(view.window, at_once=False)
            if view.cursor is not None:
                self.read_at(view.cursor)
