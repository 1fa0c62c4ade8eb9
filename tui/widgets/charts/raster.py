"""Draw the lines of a chart into its raster; noisy lines become a band with the mean on top.

The band keeps the lowest and the highest sample of every dot column, so no spike is lost. Its interior is
dotted to tell it from a line on terminals without color.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby
from math import floor, isinf
from operator import itemgetter
from statistics import median
from typing import Literal

from tui.analysis.series import Series, Shaper
from tui.widgets.charts import braille
from tui.widgets.charts.braille import Grid, Span
from tui.widgets.charts.parts import letter, parts
from tui.widgets.charts.spec import ChartSpec, Line, Role, value_at

BAND_LINES = 3
"""Charts with more lines than this draw no bands, because the bands would cover each other."""

MIN_BAND_DOTS = 2.0
"""A line with at least this average thickness, in dots, is drawn as a band."""

AREA, BAND, EDGE = "area", "band", "edge-"
"""What the roles of shaded cells begin with: below a line, within a band, and the dots at the edge of either.

The index of the series follows; none if the band is of many.
"""
SHADES = 4
"""Steps in which the area below a line fades toward the axis."""

BLANK = 0x2800
ALL_DOTS = 0xFF
MIN_SHADED_DOTS = 6
"""A cell with fewer dots below the line is not shaded: the shade would stick out above it."""

MEAN_COLUMNS = 2
"""Half-width of the moving mean, in dot columns."""

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


def mean_spans(series: Series, grid: Grid) -> list[Span]:
    """Return a moving mean over the dot columns. Gaps stay gaps; infinities are ignored."""
    means: list[Span] = []
    for run in _band_runs(series, grid):
        sums, counts = [0.0], [0]
        for _, total, count in run:
            sums.append(sums[-1] + total)
            counts.append(counts[-1] + count)
        first = last = 0
        for number, (column, _, _) in enumerate(run):
            while run[first][0] < column - MEAN_COLUMNS:
                first += 1
            while last < len(run) and run[last][0] <= column + MEAN_COLUMNS:
                last += 1
            mean = (sums[last] - sums[first]) / (counts[last] - counts[first])
            means.append((column, mean, mean, mean, mean, number > 0))
    return means


def _band_runs(series: Series, grid: Grid) -> list[list[tuple[int, float, int]]]:
    """Return (column, sum, count) of the samples per dot column, split at gaps."""
    times, values = series.times, series.values
    begin = bisect_left(times, grid.place(-MEAN_COLUMNS))
    end = bisect_left(times, grid.place(grid.columns))
    runs: list[list[tuple[int, float, int]]] = []
    run: list[tuple[int, float, int]] = []
    column: int | None = None
    total, count = 0.0, 0
    for time_s, value in zip(times[begin:end], values[begin:end], strict=True):
        if isinf(value):
            continue
        here = floor(time_s * grid.per_second) - grid.first
        if here != column or value != value:
            if column is not None and count:
                run.append((column, total, count))
            column, total, count = here, 0.0, 0
        if value != value:  # NaN: a gap
            if run:
                runs.append(run)
            run, column = [], None
            continue
        total += value
        count += 1
    if column is not None and count:
        run.append((column, total, count))
    if run:
        runs.append(run)
    return runs


CURSOR = "│"

_NO_OWNER = -1
_FAINT = -2
_CURSOR = -3
_MEDIAN = -4
_EDGE = -5
_FIRST_FAINT = -6
"""Owner of the faint samples of the first series, if several have some; those of the next is one less."""
_ROLES: dict[int, Role] = {
    _NO_OWNER: "blank",
    _FAINT: "faint",
    _CURSOR: "cursor",
    _MEDIAN: "median",
}
MAX_LABELS = 3
"""Charts with more lines show the values at the cursor only in the legend."""


class _Canvas:
    """The cells of a raster: a character, whose it is, and the shade behind it."""

    def __init__(self, width: int, rows: int) -> None:
        self.width, self.rows = width, rows
        self.characters = [[" "] * width for _ in range(rows)]
        self.owners = [[_NO_OWNER] * width for _ in range(rows)]
        self.shades = [[""] * width for _ in range(rows)]

    def draw(self, owner: int, bits: dict[int, int]) -> list[braille.Cell]:
        """Draw dots over what is there: two colors cannot share a cell."""
        cells = braille.cells(bits, self.rows)
        for row, column, character in cells:
            # cells of several bands have the dots of all, in gray
            shared = owner <= _FIRST_FAINT and self.owners[row][column] not in (_NO_OWNER, _CURSOR)
            before = ord(self.characters[row][column]) if shared else 0
            self.characters[row][column] = chr(before | ord(character))
            self.owners[row][column] = _FAINT if shared else owner
        return cells

    def shade(self, shade: str, bits: dict[int, int]) -> None:
        """Shade the cells that the dots fill; those filled in part are drawn, if at the edge of a band."""
        for row, column, character in braille.cells(bits, self.rows):
            if shade.startswith(AREA):
                if (ord(character) - BLANK).bit_count() >= MIN_SHADED_DOTS:
                    self.shades[row][column] = f"{shade}-{row * SHADES // self.rows}"
            elif ord(character) - BLANK == ALL_DOTS:
                self.shades[row][column] = shade
            else:
                self.characters[row][column], self.owners[row][column] = character, _EDGE

    def write(self, row: int, column: int, text: str, owner: int) -> None:
        self.characters[row][column : column + len(text)] = text
        self.owners[row][column : column + len(text)] = [owner] * len(text)

    def lines(self, edge: str) -> list[Line]:
        return [
            [
                ("".join(character for character, _, _ in cells), _role(owner, shade, edge))
                for (owner, shade), cells in groupby(zip(*row, strict=True), itemgetter(1, 2))
            ]
            for row in zip(self.characters, self.owners, self.shades, strict=True)
        ]


def draw_raster(
    series: Sequence[Series],
    spec: ChartSpec,
    width: int,
    rows: int,
    ends: tuple[float, float],
    shaper: Shaper,
) -> list[Line]:
    """Return exactly ``rows`` lines of ``width`` cells; ``ends`` are the bottom and top of the value axis."""
    columns = width * braille.DOTS_PER_CELL_X
    grid = braille.Grid.over(spec.start, spec.end, columns)
    dot_rows = rows * braille.DOTS_PER_CELL_Y
    layers = _layers(series, spec, shaper)
    few = not spec.smoothing and len(layers) <= BAND_LINES
    drawn: list[tuple[int, dict[int, int]]] = []
    faint: list[tuple[int, dict[int, int]]] = []
    # the crowd's faint lines share cells, so they are cut into characters only once
    many: dict[int, int] = {}
    banded: list[list[Span]] = []
    for index, kind, layer in layers:
        spans = braille.reduce_to_spans(layer, grid)
        if kind == "crowd" and spec.band:
            banded.append(spans)
            continue
        bits = braille.dot_columns(spans, columns, dot_rows, *ends)
        if few and kind == "line" and is_band(spans, dot_rows, *ends):
            faint.append((_FIRST_FAINT - index, bits))
            bits = braille.dot_columns(mean_spans(layer, grid), columns, dot_rows, *ends)
        if kind == "line":
            drawn.append((index, bits))
        elif kind == "crowd":
            for column, dots in bits.items():
                many[column] = many.get(column, 0) | dots
        else:
            faint.append((_FIRST_FAINT - index, bits))
    canvas = _Canvas(width, rows)
    cursor = -1 if spec.cursor is None else grid.column(spec.cursor) // braille.DOTS_PER_CELL_X
    has_cursor = 0 <= cursor < width
    if has_cursor:
        for row in range(rows):
            canvas.write(row, cursor, CURSOR, _CURSOR)
    edge = ""
    if banded:
        band, middle = _band_and_median(banded)
        faint.append((_FAINT, braille.dot_columns(band, columns, dot_rows, *ends)))
        drawn.insert(0, (_MEDIAN, braille.dot_columns(middle, columns, dot_rows, *ends)))
    if many:
        canvas.draw(_FAINT, many)
    if spec.shaded and len(faint) == 1 and not spec.smoothing:
        edge = BAND if banded else f"{BAND}:{_FIRST_FAINT - faint[0][0]}"
        canvas.shade(edge, faint[0][1])
    else:
        for owner, bits in faint:
            canvas.draw(_FAINT if len(faint) == 1 else owner, dotted(bits, grid))
    if spec.shaded and not faint and not many and len(drawn) == 1:
        edge = f"{AREA}:{drawn[0][0]}"
        canvas.shade(edge, {column: (1 << dots.bit_length()) - 1 for column, dots in drawn[0][1].items()})
    cells = [(owner, canvas.draw(owner, bits)) for owner, bits in drawn]
    lettered = [(owner, line_cells) for owner, line_cells in cells if owner >= 0]
    if spec.letters and (len(lettered) > 1 or (banded and lettered)):
        _mark(lettered, canvas)
    if has_cursor and spec.cursor is not None and len(lettered) <= MAX_LABELS:
        for owner, line_cells in lettered:
            value = value_at(series[owner], spec.cursor)
            _label(canvas, cursor, line_cells, "" if value is None else spec.exact(value), owner)
    return canvas.lines(edge)


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


def _layers(series: Sequence[Series], spec: ChartSpec, shaper: Shaper) -> list[tuple[int, Kind, Series]]:
    """Return (series index, kind, samples) of each line to draw, bottom layer first."""
    drawn = parts(series, spec)
    top = [index for index in drawn.lines if series[index].name == spec.selected]
    layers: list[tuple[int, Kind]] = [(index, "crowd") for index in drawn.crowd]
    if spec.smoothing and spec.raw:
        layers += [(index, "raw") for index in drawn.lines]
    layers += [(index, "line") for index in drawn.lines if index not in top]
    layers += [(index, "line") for index in top]
    weights = {"line": spec.smoothing, "raw": 0.0, "crowd": spec.smoothing}
    return [
        (index, kind, shaper.shape(series[index], smoothing=weights[kind], log=spec.log))
        for index, kind in layers
    ]


def _mark(drawn: Sequence[tuple[int, Sequence[braille.Cell]]], canvas: _Canvas) -> None:
    """Put each series' letter on its line near the right edge, in alternate columns."""
    for number, (index, drawn_cells) in enumerate(drawn):
        target = canvas.width - 1 - 2 * number
        best = min(drawn_cells, key=lambda cell: (abs(cell[1] - target), cell[0]), default=None)
        if best is not None:
            canvas.write(best[0], best[1], letter(index), index)


def _label(canvas: _Canvas, cursor: int, line_cells: Sequence[braille.Cell], text: str, owner: int) -> None:
    """Write a value beside the cursor, next to where its line crosses it: over nothing else if possible."""
    crossing = next((row for row, column, _ in line_cells if column == cursor), None)
    fits_right = cursor + 1 + len(text) <= canvas.width
    if not text or crossing is None or not (fits_right or len(text) <= cursor):
        return
    begin = cursor + 1 if fits_right else cursor - len(text)
    rows = [row for row in (crossing - 1, crossing + 1) if 0 <= row < canvas.rows]
    free = [row for row in rows if {*canvas.owners[row][begin : begin + len(text)]} == {_NO_OWNER}]
    canvas.write([*free, crossing][0], begin, text, owner)


def _role(owner: int, shade: str, edge: str) -> Role:
    """Return the role of a cell; that of its shade comes first."""
    if owner == _EDGE:
        return f"{EDGE}{edge}"
    if owner == _NO_OWNER and shade:
        return shade
    role: Role = f"faint-{_FIRST_FAINT - owner}" if owner <= _FIRST_FAINT else _ROLES.get(owner, owner)
    return f"{shade} {role}" if shade else role
