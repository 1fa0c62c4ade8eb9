"""Draw the lines of a chart into its raster; noisy lines become a band with their usual level on top.

The band keeps the lowest and the highest sample of every dot column, so no spike is lost. Its interior is
dotted to tell it from a line on terminals without color.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Literal

from tui.analysis.series import Series, logarithmic, smoothed
from tui.widgets.charts import braille
from tui.widgets.charts.braille import Grid, Span
from tui.widgets.charts.parts import letter, parts
from tui.widgets.charts.spec import ChartSpec, Line, Role, value_at

BAND_LINES = 3
"""Charts with more lines than this draw no bands, because the bands would cover each other."""

MIN_BAND_DOTS = 2.0
"""A line with at least this average thickness, in dots, is drawn as a band."""

AREA, BAND = "area", "band"
"""What the roles of the dots below a line, and of those of a band, begin with.

The index of the series follows; none if the band is of many.
"""
MIDDLE_COLUMNS = 3
"""Half of the dot columns, beside its own, that the usual level of a noisy line is taken from."""

_EVEN = int("5" * 256, 16)  # more bits than any chart has dot rows
_ODD = _EVEN << 1


def is_band(spans: Sequence[Span], dot_rows: int, bottom: float, top: float) -> bool:
    if not spans or top <= bottom:
        return False
    thick = sum(min(high, top) - max(low, bottom) for _, low, high, _, _, _ in spans if high > low)
    return thick / (top - bottom) * (dot_rows - 1) >= MIN_BAND_DOTS * len(spans)


def dotted(bits: dict[int, int], grid: Grid) -> dict[int, int]:
    dots_by_column: dict[int, int] = {}
    for column, dots in bits.items():
        ends = 1 << dots.bit_length() - 1 | (dots & -dots)
        dots_by_column[column] = dots & (_ODD if (column + grid.first) & 1 else _EVEN) | ends
    return dots_by_column


def middle_spans(spans: Sequence[Span], bottom: float, top: float) -> list[Span]:
    """Return the usual level of a noisy line: the median of the middles of columns next to each other."""
    middles = [(max(low, bottom) + min(high, top)) / 2 for _, low, high, _, _, _ in spans]
    middles = [min(max(middle, bottom), top) for middle in middles]
    levels: list[Span] = []
    for position, (column, *_, joined) in enumerate(spans):
        level = median(middles[max(0, position - MIDDLE_COLUMNS) : position + MIDDLE_COLUMNS + 1])
        levels.append((column, level, level, level, level, joined))
    return levels


CURSOR = "│"

_BLANK: Role = "blank"
MAX_LABELS = 3
"""Charts with more lines show the values at the cursor only in the legend."""


class _Canvas:
    """The cells of a raster: a character and its role."""

    def __init__(self, width: int, rows: int) -> None:
        self.width, self.rows = width, rows
        self.characters = [[" "] * width for _ in range(rows)]
        self.roles = [[_BLANK] * width for _ in range(rows)]

    def draw(self, role: Role, bits: dict[int, int]) -> list[braille.Cell]:
        """Draw dots over what is there: two colors cannot share a cell."""
        cells = braille.cells(bits, self.rows)
        for row, column, character in cells:
            self.characters[row][column], self.roles[row][column] = character, role
        return cells

    def write(self, row: int, column: int, text: str, role: Role) -> None:
        self.characters[row][column : column + len(text)] = text
        self.roles[row][column : column + len(text)] = [role] * len(text)

    def lines(self) -> list[Line]:
        return [
            [
                ("".join(character for character, _ in cells), role)
                for role, cells in groupby(row, itemgetter(1))
            ]
            for row in (zip(*row, strict=True) for row in zip(self.characters, self.roles, strict=True))
        ]


def draw_raster(
    series: Sequence[Series],
    spec: ChartSpec,
    width: int,
    rows: int,
    ends: tuple[float, float],
) -> list[Line]:
    """Return exactly ``rows`` lines of ``width`` cells; ``ends`` are the bottom and top of the value axis."""
    columns = width * braille.DOTS_PER_CELL_X
    grid = braille.Grid.over(spec.start, spec.end, columns)
    dot_rows = rows * braille.DOTS_PER_CELL_Y
    layers = _layers(series, spec)
    few = not spec.smoothing and len(layers) <= BAND_LINES
    lines: list[tuple[Role, dict[int, int]]] = []
    bands: list[tuple[str, dict[int, int]]] = []
    gray: dict[int, int] = {}
    members: list[list[Span]] = []
    for index, kind, layer in layers:
        spans = braille.reduce_to_spans(layer, grid)
        if kind == "crowd" and spec.band:
            members.append(spans)
            continue
        bits = braille.dot_columns(spans, columns, dot_rows, *ends)
        if kind == "crowd":
            for column, dots in bits.items():
                gray[column] = gray.get(column, 0) | dots
            continue
        if kind == "raw":
            bands.append((f"{BAND}:{index}", bits))
            continue
        if few and is_band(spans, dot_rows, *ends):
            bands.append((f"{BAND}:{index}", bits))
            bits = braille.dot_columns(middle_spans(spans, *ends), columns, dot_rows, *ends)
        lines.append((index, bits))
    if members:
        band, middle = _band_and_median(members)
        bands.append((BAND, braille.dot_columns(band, columns, dot_rows, *ends)))
        lines.insert(0, ("median", braille.dot_columns(middle, columns, dot_rows, *ends)))
    canvas = _Canvas(width, rows)
    cursor = -1 if spec.cursor is None else grid.column(spec.cursor) // braille.DOTS_PER_CELL_X
    canvas.draw("faint", gray)
    if spec.shaded and (len(lines) == 1 or (spec.leads and lines)) and not gray and not members:
        first, bits = lines[0]
        lowest = dict(bands).get(f"{BAND}:{first}", bits)
        canvas.draw(f"{AREA}:{first}", {column: 2 * (dots & -dots) - 1 for column, dots in lowest.items()})
    if 0 <= cursor < width:
        for row in range(rows):
            canvas.write(row, cursor, CURSOR, "cursor")
    for shade, bits in bands:
        canvas.draw(shade, dotted(bits, grid))
    drawn = [(role, canvas.draw(role, bits)) for role, bits in lines]
    named = [(role, cells) for role, cells in drawn if isinstance(role, int)]
    if spec.letters and (len(named) > 1 or (members and named)):
        _mark(named, canvas)
    if 0 <= cursor < width and spec.cursor is not None and len(named) <= MAX_LABELS:
        for index, cells in named:
            value = value_at(series[index], spec.cursor)
            _label(canvas, cursor, cells, "" if value is None else spec.exact(value), index)
    return canvas.lines()


def _band_and_median(series: Sequence[Sequence[Span]]) -> tuple[list[Span], list[Span]]:
    """Return the extremes of all series per dot column, and the median of their middles.

    A column without a sample of a series takes part in the band only through the others; columns without
    any are joined unless all series have a gap there.
    """
    columns: dict[int, tuple[list[float], list[float], list[float], bool]] = {}
    for spans in series:
        for column, low, high, _, _, joined in spans:
            lows, highs, middles, was_joined = columns.setdefault(column, ([], [], [], False))
            lows.append(low)
            highs.append(high)
            middles.append((low + high) / 2)
            columns[column] = (lows, highs, middles, was_joined or joined)
    band: list[Span] = []
    middle: list[Span] = []
    for column in sorted(columns):
        lows, highs, middles, joined = columns[column]
        low, high, value = min(lows), max(highs), median(middles)
        band.append((column, low, high, low, high, joined))
        middle.append((column, value, value, value, value, joined))
    return band, middle


Kind = Literal["line", "raw", "crowd"]
"""A line in the color of its series, the samples that it smooths, or one of many in gray."""


def _layers(series: Sequence[Series], spec: ChartSpec) -> list[tuple[int, Kind, Series]]:
    """Return (series index, kind, samples) of each line to draw, bottom layer first."""
    drawn = parts(series, spec)
    layers: list[tuple[int, Kind]] = [(index, "crowd") for index in drawn.crowd]
    if spec.smoothing and spec.raw:
        layers += [(index, "raw") for index in drawn.lines]
    layers += [(index, "line") for index in drawn.lines]
    layers.sort(key=lambda layer: layer[1] == "line" and series[layer[0]].name == spec.selected)
    return [(index, kind, _shaped(series[index], kind, spec)) for index, kind in layers]


def _shaped(series: Series, kind: Kind, spec: ChartSpec) -> Series:
    if spec.smoothing and kind != "raw":
        series = smoothed(series, spec.smoothing)
    return logarithmic(series) if spec.log else series


def _mark(drawn: Sequence[tuple[int, Sequence[braille.Cell]]], canvas: _Canvas) -> None:
    """Put each series' letter on its line near the right edge, in alternate columns."""
    for number, (index, drawn_cells) in enumerate(drawn):
        target = canvas.width - 1 - 2 * number
        best = min(drawn_cells, key=lambda cell: (abs(cell[1] - target), cell[0]), default=None)
        if best is not None:
            canvas.write(best[0], best[1], letter(index), index)


def _label(canvas: _Canvas, cursor: int, line_cells: Sequence[braille.Cell], text: str, role: Role) -> None:
    """Write a value beside the cursor, next to where its line crosses it: over nothing else if possible."""
    crossing = next((row for row, column, _ in line_cells if column == cursor), None)
    fits_right = cursor + 1 + len(text) <= canvas.width
    if not text or crossing is None or not (fits_right or len(text) <= cursor):
        return
    begin = cursor + 1 if fits_right else cursor - len(text)
    rows = [row for row in (crossing - 1, crossing + 1) if 0 <= row < canvas.rows]
    free = [row for row in rows if {*canvas.roles[row][begin : begin + len(text)]} == {_BLANK}]
    canvas.write([*free, crossing][0], begin, text, role)
