"""Draw the lines of a chart into its raster; noisy lines become a band with the mean on top.

The band keeps the lowest and the highest sample of every dot column, so no spike is lost. Its interior is
dotted to tell it from a line on terminals without color.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import floor, isinf
from statistics import median
from typing import Literal

from tui.analysis.series import Series, Shaper
from tui.widgets.charts import braille
from tui.widgets.charts.braille import Grid, Span
from tui.widgets.charts.parts import letter, parts
from tui.widgets.charts.spec import ChartSpec, Line, Role

BAND_LINES = 3
"""Charts with more lines than this draw no bands, because the bands would cover each other."""

MIN_BAND_DOTS = 2.0
"""A line with at least this average thickness, in dots, is drawn as a band."""

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
_FIRST_FAINT = -5
"""Owner of the faint samples of the first series, if several have some; those of the next is one less."""
_ROLES: dict[int, Role] = {_NO_OWNER: "blank", _FAINT: "faint", _CURSOR: "cursor", _MEDIAN: "median"}


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
    characters = [[" "] * width for _ in range(rows)]
    owners = [[_NO_OWNER] * width for _ in range(rows)]
    if spec.cursor is not None:
        column = grid.column(spec.cursor) // braille.DOTS_PER_CELL_X
        if 0 <= column < width:
            for row in range(rows):
                characters[row][column], owners[row][column] = CURSOR, _CURSOR
    # Two colors cannot share a cell: a later line takes the whole cell.
    drawn: list[tuple[int, list[braille.Cell]]] = []
    faint: list[tuple[int, list[braille.Cell]]] = []
    dot_rows = rows * braille.DOTS_PER_CELL_Y
    layers = _layers(series, spec, shaper)
    few = not spec.smoothing and len(layers) <= BAND_LINES
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
            faint.append((_FIRST_FAINT - index, braille.cells(dotted(bits, grid), rows)))
            bits = braille.dot_columns(mean_spans(layer, grid), columns, dot_rows, *ends)
        elif kind == "raw":
            bits = dotted(bits, grid)
        if kind == "line":
            drawn.append((index, braille.cells(bits, rows)))
        elif kind == "crowd":
            for column, dots in bits.items():
                many[column] = many.get(column, 0) | dots
        else:
            faint.append((_FIRST_FAINT - index, braille.cells(bits, rows)))
    if many:
        faint.append((_FAINT, braille.cells(many, rows)))
    if banded:
        band, middle = _band_and_median(banded)
        cells = braille.cells(dotted(braille.dot_columns(band, columns, dot_rows, *ends), grid), rows)
        faint.append((_FAINT, cells))
        drawn.insert(0, (_MEDIAN, braille.cells(braille.dot_columns(middle, columns, dot_rows, *ends), rows)))
    if len(faint) == 1:
        faint = [(_FAINT, faint[0][1])]
    for owner, drawn_cells in (*faint, *drawn):
        for row, column, character in drawn_cells:
            # cells of several bands have the dots of all, in gray
            shared = owner <= _FIRST_FAINT and owners[row][column] not in (_NO_OWNER, _CURSOR)
            before = ord(characters[row][column]) if shared else 0
            characters[row][column] = chr(before | ord(character))
            owners[row][column] = _FAINT if shared else owner
    lettered = [layer for layer in drawn if layer[0] >= 0]
    if spec.letters and (len(lettered) > 1 or (banded and lettered)):
        _mark(lettered, characters, owners, width)
    return [_runs(characters[row], owners[row]) for row in range(rows)]


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


def _mark(
    drawn: Sequence[tuple[int, Sequence[braille.Cell]]],
    characters: list[list[str]],
    owners: list[list[int]],
    width: int,
) -> None:
    """Put each series' letter on its line near the right edge, in alternate columns."""
    for number, (index, drawn_cells) in enumerate(drawn):
        target = width - 1 - 2 * number
        best = min(drawn_cells, key=lambda cell: (abs(cell[1] - target), cell[0]), default=None)
        if best is not None:
            row, column, _ = best
            characters[row][column] = letter(index)
            owners[row][column] = index


def _runs(characters: list[str], owners: list[int]) -> Line:
    runs: Line = []
    begin = 0
    width = len(owners)
    for column in range(1, width + 1):
        if column == width or owners[column] != owners[begin]:
            owner = owners[begin]
            runs.append(("".join(characters[begin:column]), _role(owner)))
            begin = column
    return runs


def _role(owner: int) -> Role:
    return f"faint-{_FIRST_FAINT - owner}" if owner <= _FIRST_FAINT else _ROLES.get(owner, owner)
