"""Draw the lines of a chart: each smoothed by a moving median, over a band of its samples.

The band keeps the lowest and the highest sample of every dot column, so no spike is lost. Its interior is
dotted to tell it from a line on terminals without color.
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
from tui.widgets.charts.braille import Grid, Span
from tui.widgets.charts.parts import letter, parts
from tui.widgets.charts.spec import ChartSpec, Line, Role, value_at

AREA, BAND = "area", "band"
"""First parts of the roles of cells below a line, and of the dots of a band.

A band of one series is "band:INDEX", that of many is "band". An area is "area:LINE:ROWS:OVER": the role of
the line, the number of dot rows of the cell below it, and the role of what is drawn over the area.
"""

_EVERY_OTHER = int("5" * 256, 16)  # more bits than any chart has dot rows


Dots = dict[int, int]
"""The dots of each column that has any, as bits; bit 0 is the lowest."""


def dotted(bits: Dots, grid: Grid) -> Dots:
    """Keep every other dot, and the ends of each column."""
    return {
        column: dots & _EVERY_OTHER << (column + grid.first) % 2 | 1 << dots.bit_length() - 1 | (dots & -dots)
        for column, dots in bits.items()
    }


def smoothed_spans(spans: Sequence[Span], bottom: float, top: float) -> list[Span]:
    """Return a smoothed line: at each column, the median of the middles of up to seven columns.

    Toward the ends the window shrinks but stays centered, so that a rise of the last minutes is not
    smoothed away; the line ends with the newest sample.
    """
    middles = [(max(low, bottom) + min(high, top)) / 2 for _, low, high, _, _, _ in spans]
    middles[-1:] = [newest for *_, newest, _ in spans[-1:]]
    middles = [min(max(middle, bottom), top) for middle in middles]
    columns = [span[0] for span in spans]
    levels: list[Span] = []
    for column, *_, joined in spans:
        half = min(3, column - columns[0], columns[-1] - column)
        level = median(middles[bisect_left(columns, column - half) : bisect_right(columns, column + half)])
        levels.append((column, level, level, level, level, joined))
    return levels


class Canvas:
    """The cells of a part of a chart: a character and its role, row by row."""

    def __init__(self, width: int, rows: int) -> None:
        self.width, self.rows = width, rows
        self.characters = [" "] * width * rows
        self.roles: list[Role] = ["blank" for _ in range(width * rows)]
        self._levels = [0] * width
        """Height of the shaded area in each column, in dot rows."""
        self._shaded_line: Role = 0

    def shade(self, line: Role, bits: Dots, band: Dots) -> None:
        """Shade the area below a line; a cell that the line crosses is shaded by the share below it.

        A flat line is not shaded: a filled rectangle would dominate the screen and show nothing. Neither is
        noise, a line that varies less than its ``band`` is high.
        """
        levels = [0] * self.width
        for column in range(self.width):
            both = [bits[dot] for dot in (2 * column, 2 * column + 1) if dot in bits]
            if both:
                ends = sum((line & -line).bit_length() + line.bit_length() for line in both)
                levels[column] = ends // (2 * len(both)) - 1
        covered = sorted(filter(None, levels)) or [0]
        # A line is flat if the area below it almost fills a rectangle as high as its 90th percentile.
        rectangle = covered[len(covered) * 9 // 10] * len(covered)
        heights = [dots.bit_length() - (dots & -dots).bit_length() for dots in band.values()]
        if sum(covered) < 0.92 * rectangle and covered[-1] - covered[0] >= median(heights or [0]):
            self._shaded_line, self._levels = line, levels

    def draw(self, role: Role, bits: Dots) -> None:
        """Draw dots, replacing the cells that they are in: a cell has only one color."""
        for place, character in braille.cells(bits, self.width, self.rows).items():
            self.characters[place], self.roles[place] = character, role

    def draw_lines(self, lines: Mapping[Role, Dots], *, take_turns: bool) -> dict[Role, braille.Cells]:
        """Draw each line over the ones before it; return the cells of each.

        With ``take_turns``, lines alternate in the cells that they share, so that lines that coincide are
        all visible; a line too short to get a turn is drawn on top.
        """
        cells = {role: braille.cells(bits, self.width, self.rows) for role, bits in lines.items()}
        on_top: dict[int, Role] = {}
        sharing: dict[int, list[Role]] = {}
        for role, drawn in cells.items():
            for place in on_top.keys() & drawn.keys() if take_turns else ():
                sharing.setdefault(place, [on_top[place]]).append(role)
            on_top |= dict.fromkeys(drawn, role)
        for place, sharers in sharing.items():
            # turns are two cells long, so that the colors can be distinguished
            on_top[place] = sharers[place % self.width // 2 % len(sharers)]
        for role, drawn in cells.items() if take_turns else ():
            if role not in on_top.values():
                on_top |= dict.fromkeys(drawn, role)
        for place, role in on_top.items():
            self.characters[place], self.roles[place] = cells[role][place], role
        return cells

    def write(self, row: int, column: int, text: str, role: Role) -> None:
        cell_range = self.cell_range(row, column, len(text))
        self.characters[cell_range], self.roles[cell_range] = text, [role] * len(text)

    def cell_range(self, row: int, column: int, cells: int) -> slice:
        return slice(row * self.width + column, row * self.width + column + cells)

    def lines(self) -> list[Line]:
        roles, most = list(self.roles), braille.DOTS_PER_CELL_Y
        for column, level in enumerate(self._levels):
            for row in range(-(-level // most)):
                place = column + (self.rows - 1 - row) * self.width
                roles[place] = f"{AREA}:{self._shaded_line}:{min(level - row * most, most)}:{roles[place]}"
        rest = iter(self.characters)
        rows = (roles[self.cell_range(row, 0, self.width)] for row in range(self.rows))
        return [[("".join(islice(rest, len([*run]))), role) for role, run in groupby(row)] for row in rows]


def draw_raster(
    series: Sequence[Series], spec: ChartSpec, width: int, rows: int, ends: tuple[float, float]
) -> list[Line]:
    """Return exactly ``rows`` lines of ``width`` cells; ``ends`` are the bottom and top of the value axis."""
    columns, dot_rows = width * braille.DOTS_PER_CELL_X, rows * braille.DOTS_PER_CELL_Y
    grid = braille.Grid.over(spec.start, spec.end, columns)

    def spans_of(index: int, smoothing: float) -> list[Span]:
        shaped = smoothed(series[index], smoothing) if smoothing else series[index]
        return braille.reduce_to_spans(logarithmic(shaped) if spec.log else shaped, grid)

    def dots_of(spans: Sequence[Span]) -> Dots:
        return braille.dot_columns(spans, columns, dot_rows, *ends)

    drawn = parts(series, spec)
    lines: dict[Role, Sequence[Span]] = {}
    bands: dict[str, Dots] = {}
    gray: Dots = {}
    crowd = [spans_of(index, spec.smoothing) for index in drawn.crowd]
    if spec.band and crowd:
        band, middle = _band_and_median(crowd)
        bands[BAND], lines["median"] = dots_of(band), smoothed_spans(middle, *ends)
    else:
        for spans in crowd:
            for column, dots in dots_of(spans).items():
                gray[column] = gray.get(column, 0) | dots
    # The bands of more than three lines would cover each other.
    has_bands = not spec.smoothing and len(drawn.lines) + (len(lines) or len(crowd)) <= 3
    for index in sorted(drawn.lines, key=lambda index: series[index].name == spec.selected):
        lines[index] = spans_of(index, spec.smoothing)
        if spec.smoothing and spec.raw:
            bands[f"{BAND}:{index}"] = dots_of(spans_of(index, 0.0))
        elif spec.leads and index:  # evaluations are points, to keep the line they belong to visible
            lines[index] = [(*span[:-1], False) for span in lines[index]]
        elif has_bands:
            bands[f"{BAND}:{index}"] = dots_of(lines[index])
            lines[index] = smoothed_spans(lines[index], *ends)

    canvas = Canvas(width, rows)
    canvas.draw("faint", gray)
    dots_by_role = {role: dots_of(spans) for role, spans in lines.items()}
    if spec.shaded and (len(lines) == 1 or (spec.leads and not crowd and lines)):
        lead, lead_dots = next(iter(dots_by_role.items()))
        canvas.shade(lead, lead_dots, bands.get(f"{BAND}:{lead}", {}))
    cursor = -1 if spec.cursor is None else grid.column(spec.cursor) // braille.DOTS_PER_CELL_X
    if 0 <= cursor < width:
        for row in range(rows):
            canvas.write(row, cursor, "│", "cursor")
    for shade, dots_by_column in bands.items():
        canvas.draw(shade, dotted(dots_by_column, grid))
    cells = canvas.draw_lines(dots_by_role, take_turns=not (spec.leads or spec.selected))
    named = [(role, line_cells) for role, line_cells in cells.items() if isinstance(role, int)]
    lettered = spec.letters and len(cells) > 1
    labeled: set[int] = set()
    if 0 <= cursor < width and spec.cursor is not None and len(named) <= 3:
        at = spec.cursor
        values = ((value_at(series[index], at), index, line_cells) for index, line_cells in named)
        known = [(value, index, line_cells) for value, index, line_cells in values if value is not None]
        read = sorted(known, key=itemgetter(0), reverse=True)
        for value, index, line_cells in read:
            name = f"{letter(index)} " if lettered else ""
            sides = [side for side, end in ((-1, read[0]), (1, read[-1])) if end[1] == index]
            if _write_value(canvas, cursor, line_cells, f"{name}{spec.exact(value)}", index, sides):
                labeled.add(index)
    if lettered:
        _write_letters([line for line in named if line[0] not in labeled], canvas)
    return canvas.lines()


def _band_and_median(series: Sequence[Sequence[Span]]) -> tuple[list[Span], list[Span]]:
    """Return the extremes of all series per dot column, and the median of their middles.

    A column's values come from the series with samples in it; it is joined to the column before unless all
    of these have a gap there.
    """
    columns: defaultdict[int, list[Span]] = defaultdict(list)
    for span in chain.from_iterable(series):
        columns[span[0]].append(span)
    band: list[Span] = []
    middle: list[Span] = []
    for column in sorted(columns):
        _, lows, highs, _, _, joins = zip(*columns[column], strict=True)
        low, high, joined = min(lows), max(highs), any(joins)
        value = median([(low + high) / 2 for low, high in zip(lows, highs, strict=True)])
        band.append((column, low, high, low, high, joined))
        middle.append((column, value, value, value, value, joined))
    return band, middle


def _write_letters(drawn: Sequence[tuple[int, braille.Cells]], canvas: Canvas) -> None:
    """Put each series' letter where its line is seen near the right edge, in alternate columns."""
    for number, (index, drawn_cells) in enumerate(drawn):
        target = canvas.width - 1 - 2 * number
        cell_range = (divmod(place, canvas.width) for place in drawn_cells if canvas.roles[place] == index)
        best = min(cell_range, key=lambda place: (abs(place[1] - target), place[0]), default=None)
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
    """Write a line's value beside the cursor, where it hides the fewest cells of lines; return True if done.

    Its row is that where the line crosses the cursor, or above (-1 in ``sides``) or below it (1): values keep
    the order of their lines. It is left out if it would cover another value; the legend shows both.
    """
    crossing = next((place // canvas.width for place in line_cells if place % canvas.width == cursor), None)
    fits_right = cursor + 1 + len(text) <= canvas.width
    if crossing is None or not (fits_right or len(text) <= cursor):
        return False
    begin = cursor + 1 if fits_right else cursor - len(text)
    rows = [crossing + side for side in sides if 0 <= crossing + side < canvas.rows]
    cells = {row: canvas.cell_range(row, begin, len(text)) for row in (*rows, crossing)}

    def covered(row: int) -> int:
        return sum(not str(role).startswith(("blank", BAND)) for role in canvas.roles[cells[row]])

    row = min(cells, key=covered)
    if any(map(str.isdigit, canvas.characters[cells[row]])):
        return False
    canvas.write(row, begin, text, role)
    return True
