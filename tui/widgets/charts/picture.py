"""A whole chart as lines of text with roles: axes, legend and raster together, without any widget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal

from rich.cells import cell_len

from tui.insight.series import Series, latest
from tui.insight.text import clip, inert
from tui.insight.units import number
from tui.widgets.charts import braille
from tui.widgets.charts.legend import Role, Run, header, letter
from tui.widgets.charts.ticks import TimeAxis, default_label, time_ticks, value_ticks
from tui.widgets.charts.trace import trace

AXES_MIN_WIDTH = 20
AXES_MIN_HEIGHT = 4
"""Below these the chart is a row of blocks, or a number."""

_RULE_MIN_HEIGHT = 9  # from here on the bottom axis gets a line of its own
_ROWS_PER_TICK = 4
_LABEL_SHARE = 3  # tick labels take at most a third of the width
_TRACE_MIN_CELLS = 4

Line = list[Run]


@dataclass(frozen=True, slots=True)
class ChartSpec:
    """Everything about a chart but its samples. Times are epoch seconds."""

    title: str = ""
    start: float = 0.0
    end: float = 0.0
    y_min: float | None = None
    y_max: float | None = None
    unit: Callable[[float], str] | None = None
    tick_base: Literal[2, 10] = 10
    time_axis: TimeAxis = "relative"
    end_label: str = "now"
    timezone: tzinfo | None = None
    empty_text: str = "no data yet"
    note: str = ""
    letters: bool = False


def draw(series: Sequence[Series], spec: ChartSpec, width: int, height: int) -> list[Line]:
    """Exactly `height` lines of exactly `width` cells; whatever does not fit is left out in a fixed order."""
    if width <= 0 or height <= 0:
        return []
    if width < AXES_MIN_WIDTH or height < AXES_MIN_HEIGHT:
        return _small(series, spec, width, height)
    return _full(series, spec, width, height)


def _full(series: Sequence[Series], spec: ChartSpec, width: int, height: int) -> list[Line]:
    has_rule = height >= _RULE_MIN_HEIGHT
    rows = height - (3 if has_rule else 2)
    ranges = [
        found for one in series if (found := braille.value_range(one, spec.start, spec.end)) is not None
    ]
    if not ranges:
        title = header(spec.title, (), width, number, note=spec.note)
        return [title, *_message(spec.empty_text, width, height - 1)]
    ticks = value_ticks(
        min(low for low, _ in ranges),
        max(high for _, high in ranges),
        max(2, rows // _ROWS_PER_TICK + 1),
        fixed_low=spec.y_min,
        fixed_high=spec.y_max,
        base=spec.tick_base,
    )
    unit = spec.unit or default_label(ticks[1] - ticks[0])
    labels = _tick_labels(ticks, unit, rows, width // _LABEL_SHARE)
    margin = max(cell_len(text) for text in labels.values()) + 1
    raster = _raster(series, spec, width - margin, rows, ticks)
    lines = [header(spec.title, series, width, spec.unit or number, letters=spec.letters, note=spec.note)]
    for row in range(rows):
        text = labels.get(row, "")
        axis = " " * (margin - 1 - cell_len(text)) + text + ("┤" if text else "│")
        lines.append([(axis, "axis"), *raster[row]])
    lines += _time_lines(spec, width, margin, has_rule)
    return lines


def _tick_labels(
    ticks: tuple[float, ...], unit: Callable[[float], str], rows: int, widest: int
) -> dict[int, str]:
    """Labels by raster row; a label equal to its neighbour's is left out, as it would tell nothing."""
    bottom, top = ticks[0], ticks[-1]
    labels: dict[int, str] = {}
    seen: set[str] = set()
    ordered = [ticks[0], ticks[-1], *ticks[1:-1]]  # the ends win where two fall on one row
    for tick in ordered:
        row = round((top - tick) / (top - bottom) * (rows - 1))
        text = clip(unit(tick), max(1, widest))
        if row not in labels and text not in seen:
            labels[row] = text
            seen.add(text)
    return labels


def _raster(
    series: Sequence[Series], spec: ChartSpec, width: int, rows: int, ticks: tuple[float, ...]
) -> list[Line]:
    columns = width * braille.DOTS_PER_CELL_X
    dot_rows = rows * braille.DOTS_PER_CELL_Y
    grid = braille.Grid.over(spec.start, spec.end, columns)
    characters = [[" "] * width for _ in range(rows)]
    owners: list[list[int]] = [[-1] * width for _ in range(rows)]
    drawn: list[list[braille.Cell]] = []
    for index, one in enumerate(series):
        bits = braille.dot_columns(braille.reduce_to_spans(one, grid), columns, dot_rows, ticks[0], ticks[-1])
        found = braille.cells(bits, rows)
        drawn.append(found)
        # A later series takes the whole cell: dots of two colours cannot share one.
        for row, column, character in found:
            characters[row][column] = character
            owners[row][column] = index
    if spec.letters and len(series) > 1:
        _mark(drawn, characters, owners, width)
    return [_runs(characters[row], owners[row]) for row in range(rows)]


def _mark(
    drawn: Sequence[Sequence[braille.Cell]], characters: list[list[str]], owners: list[list[int]], width: int
) -> None:
    """Put each series' letter on its line near the right edge, one column apart from the next one's."""
    for index, found in enumerate(drawn):
        wanted = width - 1 - 2 * index
        best = min(found, key=lambda cell: (abs(cell[1] - wanted), cell[0]), default=None)
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
            role: Role = owner if owner >= 0 else "blank"
            runs.append(("".join(characters[begin:column]), role))
            begin = column
    return runs


def _time_lines(spec: ChartSpec, width: int, margin: int, has_rule: bool) -> list[Line]:
    cells = width - margin
    ticks = time_ticks(
        spec.start,
        spec.end,
        cells,
        axis=spec.time_axis,
        end_label=spec.end_label,
        timezone=spec.timezone,
    )
    labels = [" "] * width
    rule = ["─"] * cells
    free_from = 0
    placed: list[tuple[int, str]] = []
    for moment, text in reversed(ticks):  # from the right, so that the present is never crowded out
        column = margin + round((moment - spec.start) / (spec.end - spec.start) * (cells - 1))
        begin = max(free_from, min(column - len(text) // 2, width - len(text)))
        if placed and begin + len(text) + 1 > placed[-1][0]:
            continue
        placed.append((begin, text))
        rule[column - margin] = "┬"
        labels[begin : begin + len(text)] = text
    lines: list[Line] = []
    if has_rule:
        lines.append([(" " * (margin - 1) + "└" + "".join(rule), "axis")])
    lines.append([("".join(labels[:width]), "axis")])
    return lines


def _message(text: str, width: int, height: int) -> list[Line]:
    blank: Line = [(" " * width, "blank")]
    lines = [list(blank) for _ in range(height)]
    if height:
        shown = clip(inert(text), width)
        left = (width - cell_len(shown)) // 2
        padded = " " * left + shown + " " * (width - left - cell_len(shown))
        lines[height // 2 if height > 1 else 0] = [(padded, "empty")]
    return lines


def _small(series: Sequence[Series], spec: ChartSpec, width: int, height: int) -> list[Line]:
    """Title, a row of blocks and the latest value; in one line, or in two where there are two."""
    unit = spec.unit or number
    first = series[0] if series else None
    now = latest(first) if first is not None else None
    if first is None or now is None:
        return _message(spec.empty_text, width, height)
    value = clip(unit(now), width)
    title = clip(inert(spec.title), max(0, width - cell_len(value) - 1))
    begin = next((index for index, time_s in enumerate(first.times) if time_s >= spec.start), 0)
    values = first.values[begin:]
    if height == 1:
        room = width - cell_len(value) - 1
        title = title if cell_len(title) + 1 + _TRACE_MIN_CELLS <= room else ""
        room -= cell_len(title) + 1 if title else 0
        blocks = trace(values, room, low=spec.y_min, high=spec.y_max) if room >= _TRACE_MIN_CELLS else ""
        pieces: Line = [(f"{title} ", "title")] if title else []
        pieces += [(f"{blocks} ", 0)] if blocks else []
        pieces.append((value, "legend"))
        used = sum(cell_len(text) for text, _ in pieces)
        return [[*pieces, (" " * (width - used), "blank")]]
    gap = width - cell_len(title) - cell_len(value)
    top: Line = [(title, "title"), (" " * gap, "blank"), (value, "legend")]
    blocks = trace(values, width, low=spec.y_min, high=spec.y_max)
    body: Line = [(blocks + " " * (width - cell_len(blocks)), 0)]
    filler: Line = [(" " * width, "blank")]
    return [top, body, *(list(filler) for _ in range(height - 2))]
