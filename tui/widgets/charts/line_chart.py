"""The chart widget, and the messages it posts for mouse actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.color import Color
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.analysis.series import Series
from tui.widgets.charts.braille import DOTS_PER_CELL_X, DOTS_PER_CELL_Y, Grid
from tui.widgets.charts.picture import Picture, draw_picture
from tui.widgets.charts.raster import AREA, BAND
from tui.widgets.charts.series_groups import GRAY, series_of
from tui.widgets.charts.spec import ChartSpec
from tui.widgets.components import CachedComponentStyles
from tui.widgets.tones import SERIES, SERIES_COLORS


@dataclass
class ChartMessage(Message):
    chart: LineChart


@dataclass
class Zoomed(ChartMessage):
    """Request to scale the range of the x axis by ``factor``; ``around`` is the position to keep in place."""

    factor: float
    around: float | None


@dataclass
class Panned(ChartMessage):
    """Request to move the range of the x axis by ``by`` (seconds or steps); positive moves right."""

    by: float


@dataclass
class Pointed(ChartMessage):
    """Request to put the cursor at ``x``."""

    x: float


@dataclass
class Hovered(ChartMessage):
    """The mouse pointer moved to ``x``, or left the raster (None)."""

    x: float | None


@dataclass
class SeriesClicked(ChartMessage):
    """Request to show or hide a series."""

    name: str


_ROLES = (
    *("title", "axis", "legend", "note", "empty", "blank", "off", "faint", "cursor", "emphasis", "median"),
    *("mark-good", "mark-caution", "mark-bad"),
)


class LineChart(CachedComponentStyles, Widget):
    """A chart of one or more series over a range of time or steps.

    A chart of less than 20 × 4 cells has no axes, only the header with the values. Series are drawn over each
    other, the last on top. They differ in color, or have letters on terminals without color. Only lines that
    changed are repainted.

    Mouse actions are posted as messages for the parent to handle: the wheel posts ``Zoomed``; the wheel
    with shift, horizontal scrolling and dragging post ``Panned``; a click posts ``Pointed``, or
    ``SeriesClicked`` on a name in the legend. While the spec has no cursor, the mouse pointer is the cursor.
    """

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"line-chart--{role}" for role in _ROLES),
        *SERIES.classes("line-chart--series"),
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
        & > .line-chart--off { color: $text-disabled; text-style: strike; }
        & > .line-chart--faint { color: $foreground 30%; }
        &:ansi > .line-chart--faint { color: ansi_default; text-style: dim; }
        & > .line-chart--median { color: $foreground; }
        & > .line-chart--cursor { color: $accent; text-style: bold; }
        & > .line-chart--emphasis { color: $warning; }
        & > .line-chart--mark-good { color: $text-muted; }
        & > .line-chart--mark-caution { color: $warning; text-style: bold; }
        & > .line-chart--mark-bad { color: $error; text-style: bold; }
    }
    """ + SERIES.css("LineChart", "line-chart--series")

    def __init__(self, spec: ChartSpec | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.spec = spec if spec is not None else ChartSpec()
        self._series: tuple[Series, ...] = ()
        self._cached_picture: Picture | None = None
        self._hovered_x: float | None = None
        self._pressed_column: int | None = None
        self._was_dragged = False

    def show(self, series: Sequence[Series], spec: ChartSpec) -> None:
        """Show series, the last on top. The terminal decides ``has_letters`` and ``is_shaded``."""
        if self._hovered_x is not None and not spec.start <= self._hovered_x <= spec.end:
            self._hovered_x = None
        new_series = tuple(series)
        if (new_series, spec) != (self._series, self.spec):
            previous, self.spec = self.spec, spec
            self._series = new_series
            same_colors = (previous.first_color, previous.emphasis) == (spec.first_color, spec.emphasis)
            self._redraw(whole=not same_colors)

    def _on_resize(self, event: events.Resize) -> None:
        self._redraw(whole=True)

    def _redraw(self, *, whole: bool = False) -> None:
        """Draw again, and repaint the lines that changed, or all lines if ``whole``.

        While the chart is off screen, it is drawn when it is next painted.
        """
        previous, self._cached_picture = self._cached_picture, None
        if whole or previous is None or not (self.is_attached and self.is_on_screen):
            self.refresh()
            return
        lines = self._picture().lines
        changed_y = [y for y, (old, new) in enumerate(zip(previous.lines, lines, strict=False)) if old != new]
        if changed_y:  # refresh() without a region would repaint everything
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed_y))

    def _picture(self) -> Picture:
        """Return the picture of the chart; draw it if it was not drawn since the last change."""
        if self._cached_picture is None:
            width, height = self.size
            cursor = self._hovered_x if self.spec.cursor is None else self.spec.cursor
            colors = not self.app.no_color
            is_shaded = colors and not self.app.native_ansi_color
            spec = replace(self.spec, has_letters=not colors, is_shaded=is_shaded, cursor=cursor)
            self._cached_picture = draw_picture(self._series, spec, width, height)
        return self._cached_picture

    # The mouse

    @property
    def raster_cells(self) -> int:
        """Width of the raster in cells; 0 if the chart is too small for axes."""
        return self._picture().cells

    def _x_at(self, column: int) -> float | None:
        """Return the position on the x axis of a column of the widget; None outside of the raster."""
        picture = self._picture()
        cell = column - picture.left
        if not 0 <= cell < picture.cells:
            return None
        grid = Grid.over(self.spec.start, self.spec.end, picture.cells * DOTS_PER_CELL_X)
        return grid.time_at(cell * DOTS_PER_CELL_X + 1)

    @on(events.MouseScrollUp)
    @on(events.MouseScrollDown)
    @on(events.MouseScrollLeft)
    @on(events.MouseScrollRight)
    def _zoom_or_pan(self, event: events.MouseEvent) -> None:
        event.stop()
        event.prevent_default()
        if not self.raster_cells:
            return
        is_back = isinstance(event, events.MouseScrollUp | events.MouseScrollLeft)
        is_sideways = isinstance(event, events.MouseScrollLeft | events.MouseScrollRight)
        if is_sideways or event.shift or event.ctrl:
            by = 0.1 * (self.spec.end - self.spec.start)
            self.post_message(Panned(self, -by if is_back else by))
        else:
            self.post_message(Zoomed(self, 0.8 if is_back else 1.25, self._x_at(event.x)))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed_column, self._was_dragged = event.x, False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        cells = self.raster_cells
        if self._pressed_column is None:
            self._hover(self._x_at(event.x) if event.y else None)
        if self._pressed_column is None or not cells or event.x == self._pressed_column:
            return
        self._hover(None)
        moved, self._pressed_column, self._was_dragged = self._pressed_column - event.x, event.x, True
        self.post_message(Panned(self, moved * (self.spec.end - self.spec.start) / cells))

    def on_leave(self) -> None:
        self._hover(None)

    on_hide = on_leave

    def _hover(self, x: float | None) -> None:
        if x != self._hovered_x:
            self.hover(x)
            self.post_message(Hovered(self, x))

    def hover(self, x: float | None) -> None:
        """Show the values at ``x`` as at a cursor, unless the spec has a cursor; None hides them again."""
        if x != self._hovered_x:
            self._hovered_x = x
            if self.spec.cursor is None:
                self._redraw()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        pressed_column, self._pressed_column = self._pressed_column, None
        if pressed_column is None or self._was_dragged:
            return
        name = self._series_name_at(event.x, event.y)
        if name is not None:
            self.post_message(SeriesClicked(self, name))
        elif event.y and (x := self._x_at(event.x)) is not None:
            self.post_message(Pointed(self, x))

    def _series_name_at(self, column: int, line: int) -> str | None:
        picture = self._picture()
        raster_end = picture.left + picture.cells
        if len(self._series) < 2 or not picture.cells or (line and column < raster_end):
            return None
        run_end = 0
        for text, role in picture.lines[line] if line < len(picture.lines) else ():
            run_end += cell_len(text)
            if column < run_end:
                index = series_of(role)
                return None if index is None else self._series[index].name
        return None

    # Painting

    def _style(self, role: str | int, depth: float = 0.0) -> Style:
        """Return the style of a role; ``depth`` is the distance from the top of the chart, 0 to 1."""
        if isinstance(role, str) and role.isdecimal():
            role = int(role)
        if isinstance(role, str) and role.startswith(AREA):
            _, line_role, shaded_rows, foreground_role = role.split(":", 3)
            # The background of the area fades from a fifth of the line's color at the top of the chart to a
            # twentieth at the bottom.
            strength = (0.2 - 0.15 * depth) * int(shaded_rows) / DOTS_PER_CELL_Y
            background = self._mixed(self._style(line_role), strength).rich_color
            return self._style(foreground_role) + Style(bgcolor=background)
        if isinstance(role, str) and role.startswith(BAND):
            if self.app.native_ansi_color:
                return self._style("faint")
            line_style = self._style(role.partition(":")[2] or "median")
            return line_style + Style(color=self._mixed(line_style, 0.45).rich_color)
        if isinstance(role, str) and role.startswith(GRAY):
            role = "faint"
        if role == "median" and not (self.spec.emphasis or self.spec.selected):
            role = 0  # without highlighted series, the median has the color of the first series
        if isinstance(role, int) and role >= 0 and self._series[role].name in self.spec.emphasis:
            role = "emphasis"
        if isinstance(role, int):
            role = "off" if role < 0 else f"series-{(role + self.spec.first_color) % SERIES_COLORS}"
        return self.get_component_rich_style(f"line-chart--{role}")

    def _mixed(self, line: Style, strength: float) -> Color:
        """Blend a line's color into the background; ``strength`` 1 is the line's color."""
        background = self.background_colors[1]
        return background.blend(Color.from_rich_color(line.color), strength) if line.color else background

    def render_line(self, y: int) -> Strip:
        lines = self._picture().lines
        line, depth = (lines[y], y / len(lines)) if y < len(lines) else ([], 0.0)
        segments = [Segment(text, self._style(role, depth)) for text, role in line if text]
        return Strip(segments).adjust_cell_length(self.size.width, self._style("blank"))
