"""Draw the raster of a chart: each line smoothed by a moving median, over a band of its samples.

The band reaches from the lowest to the highest sample of every dot column, so no spike is lost. It is dotted
inside, so that it differs from a line on terminals without color.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from statistics import median

from tui.analysis.series import Series, logarithmic, smoothed
from tui.widgets.charts import braille
from tui.widgets.charts.braille import ColumnSpan, Grid
from tui.widgets.charts.series_groups import group_series, letter
from tui.widgets.charts.spec import ChartSpec, Line, Role, value_at

AREA, BAND = "area", "band"
"""Prefixes of the roles of shaded cells below a line, and of the dots of a band.

The role of the band of one series is "band:INDEX", that of the band of many series is "band". The role of a
shaded cell is "area:LINE:ROWS:FOREGROUND": the role of the line, the number of dot rows of the cell that are
below the line, and the role of the character in the cell.
"""

_EVERY_OTHER = int("5" * 256, 16)  # more bits than any chart has dot rows


Dots = dict[int, int]
"""The dots of each non-empty dot column, as bits; bit 0 is the lowest dot."""


def dotted(bits: Dots, grid: Grid) -> Dots:
    """Remove every other dot, but keep the highest and the lowest dot of each column."""
    return {
        column: dots & _EVERY_OTHER << (column + grid.first) % 2 | 1 << dots.bit_length() - 1 | (dots & -dots)
        for column, dots in bits.items()
    }


def smoothed_spans(spans: Sequence[ColumnSpan], bottom: float, top: float) -> list[ColumnSpan]:
    """Return a smoothed line: in each dot column, the median of the midpoints of up to seven columns.

    ``bottom`` and ``top`` are the ends of the value axis. Toward the ends of the line, fewer columns are
    used, but as many on either side, so that a rise in the last minutes is not smoothed away. The last point
    is the newest sample.
    """
    midpoints = [(max(low, bottom) + min(high, top)) / 2 for _, low, high, _, _, _ in spans]
    midpoints[-1:] = [newest for *_, newest, _ in spans[-1:]]
    midpoints = [min(max(midpoint, bottom), top) for midpoint in midpoints]
    columns = [span[0] for span in spans]
    smoothed_line: list[ColumnSpan] = []
    for column, *_, joined in spans:
        reach = min(3, column - columns[0], columns[-1] - column)
        window = slice(bisect_left(columns, column - reach), bisect_right(columns, column + reach))
        value = median(midpoints[window])
        smoothed_line.append((column, value, value, value, value, joined))
    return smoothed_line


class Canvas:
    """Cells to draw on: each has a character and a role. Cells are counted row by row from the top left."""

    def __init__(self, width: int, rows: int) -> None:
        self.width, self.rows = width, rows
        self.characters = [" "] * width * rows
        self.roles: list[Role] = ["blank" for _ in range(width * rows)]
        self._shaded_heights = [0] * width
        """Height of the shaded area in each column of cells, in dot rows."""
        self._shaded_line: Role = 0

    def shade(self, line: Role, bits: Dots, band: Dots) -> None:
        """Shade the area below a line, whose dots are ``bits``.

        A flat line is not shaded: a filled rectangle would dominate the screen and show nothing. A noisy line
        is not shaded either: one that varies less than the height of its ``band``.
        """
        heights = [0] * self.width
        for column in range(self.width):
            dot_columns = [bits[dot] for dot in (2 * column, 2 * column + 1) if dot in bits]
            if dot_columns:
                ends = sum((dots & -dots).bit_length() + dots.bit_length() for dots in dot_columns)
                heights[column] = ends // (2 * len(dot_columns)) - 1
        sorted_heights = sorted(filter(None, heights)) or [0]
        # A line is flat if the area below it almost fills a rectangle as high as its 90th percentile.
        rectangle = sorted_heights[len(sorted_heights) * 9 // 10] * len(sorted_heights)
        is_flat = sum(sorted_heights) >= 0.92 * rectangle
        band_heights = [dots.bit_length() - (dots & -dots).bit_length() for dots in band.values()]
        is_noisy = sorted_heights[-1] - sorted_heights[0] < median(band_heights or [0])
        if not is_flat and not is_noisy:
            self._shaded_line, self._shaded_heights = line, heights

    def draw(self, role: Role, bits: Dots) -> None:
        """Draw dots. They replace what was drawn in their cells, because a cell has only one color."""
        for cell_index, character in braille.cells(bits, self.width, self.rows).items():
            self.characters[cell_index], self.roles[cell_index] = character, role

    def draw_lines(self, lines: Mapping[Role, Dots], *, take_turns: bool) -> dict[Role, braille.Cells]:
        """Draw each line over the previous lines; return the characters of each line by cell index.

        With ``take_turns``, lines alternate in the cells that they share, so that all lines stay visible
        where they coincide; a line that is too short to get a turn is drawn on top.
        """
        cells_by_role = {role: braille.cells(bits, self.width, self.rows) for role, bits in lines.items()}
        visible_role: dict[int, Role] = {}
        roles_by_shared_cell: dict[int, list[Role]] = {}
        for role, cells in cells_by_role.items():
            for index in visible_role.keys() & cells.keys() if take_turns else ():
                roles_by_shared_cell.setdefault(index, [visible_role[index]]).append(role)
            visible_role |= dict.fromkeys(cells, role)
        for index, roles in roles_by_shared_cell.items():
            # A turn is two cells long, so that the colors can be distinguished.
            visible_role[index] = roles[index % self.width // 2 % len(roles)]
        for role, cells in cells_by_role.items() if take_turns else ():
            if role not in visible_role.values():
                visible_role |= dict.fromkeys(cells, role)
        for index, role in visible_role.items():
            self.characters[index], self.roles[index] = cells_by_role[role][index], role
        return cells_by_role

    def write(self, row: int, column: int, text: str, role: Role) -> None:
        cell_range = self.cell_range(row, column, len(text))
        self.characters[cell_range], self.roles[cell_range] = text, [role] * len(text)

    def cell_range(self, row: int, column: int, cells: int) -> slice:
        return slice(row * self.width + column, row * self.width + column + cells)

    def lines(self) -> list[Line]:
        """Return each row as a ``Line``; shaded cells have a role that begins with ``AREA``."""
        roles, dots_per_cell = list(self.roles), braille.DOTS_PER_CELL_Y
        for column, height in enumerate(self._shaded_heights):
            for row in range(-(-height // dots_per_cell)):  # from the bottom
                index = column + (self.rows - 1 - row) * self.width
                shaded_rows = min(height - row * dots_per_cell, dots_per_cell)
                roles[index] = f"{AREA}:{self._shaded_line}:{shaded_rows}:{roles[index]}"
        characters = iter(self.characters)
        rows = (roles[self.cell_range(row, 0, self.width)] for row in range(self.rows))
        return [
            [("".join(islice(characters, len([*run]))), role) for role, run in groupby(row)] for row in rows
        ]


def draw_raster(
    series: Sequence[Series], spec: ChartSpec, width: int, rows: int, ends: tuple[float, float]
) -> list[Line]:
    """Return exactly ``rows`` lines of ``width`` cells; ``ends`` are the bottom and top of the value axis."""
    columns, dot_rows = width * braille.DOTS_PER_CELL_X, rows * braille.DOTS_PER_CELL_Y
    grid = braille.Grid.over(spec.start, spec.end, columns)

    def spans_of(index: int, smoothing: float) -> list[ColumnSpan]:
        curve = smoothed(series[index], smoothing) if smoothing else series[index]
        return braille.reduce_to_spans(logarithmic(curve) if spec.is_logarithmic else curve, grid)

    def dots_of(spans: Sequence[ColumnSpan]) -> Dots:
        return braille.dot_columns(spans, columns, dot_rows, *ends)

    groups = group_series(series, spec)
    lines: dict[Role, Sequence[ColumnSpan]] = {}
    bands: dict[str, Dots] = {}
    gray_dots: Dots = {}
    background = [spans_of(index, spec.smoothing) for index in groups.background]
    if spec.has_band and background:
        band, medians = _band_and_median(background)
        bands[BAND], lines["median"] = dots_of(band), smoothed_spans(medians, *ends)
    else:
        for spans in background:
            for column, dots in dots_of(spans).items():
                gray_dots[column] = gray_dots.get(column, 0) | dots
    # The bands of more than three lines would cover each other.
    has_bands = not spec.smoothing and len(groups.lines) + (len(lines) or len(background)) <= 3
    for index in sorted(groups.lines, key=lambda index: series[index].name == spec.selected):
        lines[index] = spans_of(index, spec.smoothing)
        if spec.smoothing and spec.shows_samples:
            bands[f"{BAND}:{index}"] = dots_of(spans_of(index, 0.0))
        elif spec.has_main_line and index:  # draw points, so that the main line stays visible
            lines[index] = [(*span[:-1], False) for span in lines[index]]
        elif has_bands:
            bands[f"{BAND}:{index}"] = dots_of(lines[index])
            lines[index] = smoothed_spans(lines[index], *ends)

    canvas = Canvas(width, rows)
    canvas.draw("faint", gray_dots)
    dots_by_role = {role: dots_of(spans) for role, spans in lines.items()}
    if spec.is_shaded and (len(lines) == 1 or (spec.has_main_line and not background and lines)):
        main_role, main_dots = next(iter(dots_by_role.items()))
        canvas.shade(main_role, main_dots, bands.get(f"{BAND}:{main_role}", {}))
    cursor = -1 if spec.cursor is None else grid.column(spec.cursor) // braille.DOTS_PER_CELL_X
    if 0 <= cursor < width:
        for row in range(rows):
            canvas.write(row, cursor, "│", "cursor")
    for band_role, dots_by_column in bands.items():
        canvas.draw(band_role, dotted(dots_by_column, grid))
    cells = canvas.draw_lines(dots_by_role, take_turns=not (spec.has_main_line or spec.selected))
    series_cells = [(role, line_cells) for role, line_cells in cells.items() if isinstance(role, int)]
    has_letters = spec.has_letters and len(cells) > 1
    indices_with_value: set[int] = set()
    if 0 <= cursor < width and spec.cursor is not None and len(series_cells) <= 3:
        x = spec.cursor
        values = ((value_at(series[index], x), index, line_cells) for index, line_cells in series_cells)
        values_at_cursor = [
            (value, index, line_cells) for value, index, line_cells in values if value is not None
        ]
        values_from_top = sorted(values_at_cursor, key=itemgetter(0), reverse=True)
        for value, index, line_cells in values_from_top:
            name = f"{letter(index)} " if has_letters else ""
            # Only the highest value may be written above its line, and only the lowest one below.
            sides = [
                side for side, end in ((-1, values_from_top[0]), (1, values_from_top[-1])) if end[1] == index
            ]
            if _write_value(canvas, cursor, line_cells, f"{name}{spec.exact(value)}", index, sides):
                indices_with_value.add(index)
    if has_letters:
        _write_letters([line for line in series_cells if line[0] not in indices_with_value], canvas)
    return canvas.lines()


def _band_and_median(series: Sequence[Sequence[ColumnSpan]]) -> tuple[list[ColumnSpan], list[ColumnSpan]]:
    """Return, per dot column, the extremes of all series, and the median of the midpoints of their spans.

    A dot column only counts series with samples in it. It is joined to the previous column unless all of
    these series have a gap there.
    """
    spans_by_column: defaultdict[int, list[ColumnSpan]] = defaultdict(list)
    for span in chain.from_iterable(series):
        spans_by_column[span[0]].append(span)
    band: list[ColumnSpan] = []
    medians: list[ColumnSpan] = []
    for column in sorted(spans_by_column):
        _, lows, highs, _, _, joins = zip(*spans_by_column[column], strict=True)
        low, high, joined = min(lows), max(highs), any(joins)
        value = median([(low + high) / 2 for low, high in zip(lows, highs, strict=True)])
        band.append((column, low, high, low, high, joined))
        medians.append((column, value, value, value, value, joined))
    return band, medians


def _write_letters(lines: Sequence[tuple[int, braille.Cells]], canvas: Canvas) -> None:
    """Write the letter of each series on its line, close to the right edge; each in a column of its own.

    ``lines`` has the index of each series, and its cells.
    """
    for number, (index, line_cells) in enumerate(lines):
        target_column = canvas.width - 1 - 2 * number
        visible_cells = (divmod(cell, canvas.width) for cell in line_cells if canvas.roles[cell] == index)
        best = min(visible_cells, key=lambda cell: (abs(cell[1] - target_column), cell[0]), default=None)
        if best is not None:
            canvas.write(*best, letter(index), index)


def _write_value(
    canvas: Canvas,
    cursor: int,
    line_cells: braille.Cells,
    text: str,
    role: Role,
    sides: Sequence[int],
) -> bool:
    """Write the value of a line beside the cursor, where it covers the fewest cells of lines.

    Candidates are the row in which the line crosses the cursor, and the rows above it (if -1 is in ``sides``)
    and below it (if 1 is). Return False if the value does not fit or would cover another value; the legend
    shows the value in any case.
    """
    crossing_row = next((cell // canvas.width for cell in line_cells if cell % canvas.width == cursor), None)
    fits_right = cursor + 1 + len(text) <= canvas.width
    if crossing_row is None or not (fits_right or len(text) <= cursor):
        return False
    begin = cursor + 1 if fits_right else cursor - len(text)
    rows = [crossing_row + side for side in sides if 0 <= crossing_row + side < canvas.rows]
    cells_by_row = {row: canvas.cell_range(row, begin, len(text)) for row in (*rows, crossing_row)}

    def covered_cells(row: int) -> int:
        return sum(not str(role).startswith(("blank", BAND)) for role in canvas.roles[cells_by_row[row]])

    row = min(cells_by_row, key=covered_cells)
    if any(map(str.isdigit, canvas.characters[cells_by_row[row]])):
        return False
    canvas.write(row, begin, text, role)
    return True
