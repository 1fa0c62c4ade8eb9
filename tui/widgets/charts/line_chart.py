"""Lines over time in a few cells, or in many: axes, legend and braille raster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import ClassVar, Literal

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.insight.series import Series
from tui.widgets.charts.picture import ChartSpec, Line, draw
from tui.widgets.charts.ticks import TimeAxis
from tui.widgets.palette import SERIES_COLOURS, series_classes, series_css

_ROLES = ("title", "axis", "legend", "note", "empty", "blank", "stale")


class LineChart(Widget):
    """A chart of some series over a window of time.

    Needs 20 × 4 cells for axes; smaller ones degrade to a row of blocks with the latest value. Several
    series lie over each other, the last on top, told apart by colour, or by letters where there are no
    colours. Only lines whose picture changed are painted again.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"line-chart--{role}" for role in _ROLES),
        *series_classes("line-chart--series"),
    }

    DEFAULT_CSS = """
    LineChart {
        width: 1fr;
        height: 1fr;
        min-height: 1;
        & > .line-chart--title { text-style: bold; }
        & > .line-chart--axis { color: $text-muted; }
        & > .line-chart--legend { color: $text-muted; }
        & > .line-chart--note { color: $text-warning; }
        & > .line-chart--empty { color: $text-muted; text-style: italic; }
        & > .line-chart--stale { color: $text-muted; }
    }
    """ + series_css("LineChart", "line-chart--series")

    stale: reactive[bool] = reactive(False)
    """Whether the data is older than it should be: the lines lose their colours."""

    note: reactive[str] = reactive("")
    """A remark at the right of the header, such as "stale 2 min"."""

    chart_title: reactive[str] = reactive("")
    """What the chart shows."""

    def __init__(
        self,
        title: str = "",
        *,
        unit: Callable[[float], str] | None = None,
        y_min: float | None = None,
        y_max: float | None = None,
        tick_base: Literal[2, 10] = 10,
        time_axis: TimeAxis = "relative",
        timezone: tzinfo | None = None,
        empty_text: str = "no data yet",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Make a chart without data.

        Args:
            title: what it shows.
            unit: turns a value into text for ticks and legend; plain numbers without it.
            y_min: the lower end of the value axis; chosen from the data when None.
            y_max: the upper end likewise.
            tick_base: 2 makes ticks powers of two, for bytes.
            time_axis: "relative" (back from the end) or "clock" (local time of day).
            timezone: for clock labels; the machine's own when None.
            empty_text: what to say instead of a picture when there is no sample in the window.
            name: the widget's name.
            id: its id.
            classes: its style classes.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._spec = ChartSpec(
            unit=unit,
            y_min=y_min,
            y_max=y_max,
            tick_base=tick_base,
            time_axis=time_axis,
            timezone=timezone,
            empty_text=empty_text,
        )
        self._series: tuple[Series, ...] = ()
        self._lines: list[Line] | None = None
        self._strips: list[Strip] = []
        self._strips_width = 0
        self._styles: dict[str | int, Style] = {}
        self.set_reactive(LineChart.chart_title, title)

    def set_data(self, series: Sequence[Series], *, start: float, end: float, end_label: str = "now") -> None:
        """Show these series over a window of time.

        Args:
            series: drawn in this order, the last on top.
            start: the window's left edge, epoch seconds.
            end: its right edge.
            end_label: what the right edge is called on a relative axis: "now", or "end" for a past run.
        """
        given = tuple(series)
        spec = replace(self._spec, start=start, end=end, end_label=end_label)
        unchanged = len(given) == len(self._series) and all(
            new is old or new == old for new, old in zip(given, self._series, strict=True)
        )
        if unchanged and spec == self._spec:
            return
        self._series, self._spec = given, spec
        self._redraw()

    def watch_note(self) -> None:
        """Show the new remark."""
        self._redraw()

    def watch_chart_title(self) -> None:
        """Show the new title."""
        self._redraw()

    def watch_stale(self) -> None:
        """Take colours away, or give them back."""
        self._forget_strips()

    def notify_style_update(self) -> None:
        """Colours may have changed with the theme."""
        super().notify_style_update()
        self._styles.clear()
        self._strips = []

    def _on_resize(self, event: events.Resize) -> None:
        self._lines = None
        self._forget_strips()

    def _forget_strips(self) -> None:
        self._strips = []
        self.refresh()

    def _redraw(self) -> None:
        """Draw again and mark what changed; put it off to the next paint while nobody can see it."""
        before = self._lines
        self._lines = None
        if before is None or not self._strips or not self.is_attached or not self.is_on_screen:
            self._strips = []
            self.refresh()
            return
        lines = self._picture()
        if len(lines) != len(self._strips) or len(lines) != len(before):
            self._forget_strips()
            return
        width = self.size.width
        for y, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old != new:
                self._strips[y] = self._strip(new, width)
                self.refresh(Region(0, y, width, 1))

    def _picture(self) -> list[Line]:
        if self._lines is None:
            width, height = self.size
            spec = replace(
                self._spec, title=self.chart_title, note=self.note, letters=bool(self.app.no_color)
            )
            self._lines = draw(self._series, spec, width, height)
        return self._lines

    def _style(self, role: str | int) -> Style:
        style = self._styles.get(role)
        if style is None:
            name = f"series-{role % SERIES_COLOURS}" if isinstance(role, int) else role
            if self.stale and isinstance(role, int):
                name = "stale"
            style = self._styles[role] = self.get_component_rich_style(f"line-chart--{name}")
        return style

    def _strip(self, line: Line, width: int) -> Strip:
        segments = [Segment(text, self._style(role)) for text, role in line if text]
        return Strip(segments).adjust_cell_length(width, self._style("blank"))

    def render_line(self, y: int) -> Strip:
        """One line of the picture, from the cache unless something changed."""
        width = self.size.width
        if not self._strips:
            self._styles.clear()
            self._strips = [self._strip(line, width) for line in self._picture()]
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(width, self._style("blank"))
