"""Compose a chart: header, value axis on the left, raster, legend on the right, x axis with marks of events.

Legend and axes are dropped if the chart is too small for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from math import isinf, log10

from rich.cells import cell_len

from tui.analysis.series import Series, extent, logarithmic
from tui.text.labels import LabelFormat, labeled_ticks, number_formats
from tui.text.sanitize import clip, sanitize
from tui.text.units import number
from tui.widgets.charts import braille
from tui.widgets.charts.legend import header_line, legend_table
from tui.widgets.charts.raster import Canvas, draw_raster
from tui.widgets.charts.series_groups import legend_entries
from tui.widgets.charts.spec import ChartSpec, Line, Mark, Run
from tui.widgets.charts.ticks import log_ticks, position_label, time_ticks, value_ticks

_TONES_BY_SEVERITY = ("good", "caution", "bad")


def value_labels(ticks: tuple[float, ...], spec: ChartSpec, rows: int, max_cells: int) -> dict[int, str]:
    """Return the labels of the value axis by row; no two labels are the same."""
    bottom, top = ticks[0], ticks[-1]
    tick_by_row: dict[int, float] = {}
    for tick in (bottom, top, *ticks[1:-1]):  # if ticks share a row, the ends of the axis take precedence
        tick_by_row.setdefault(round((top - tick) / (top - bottom) * (rows - 1)), tick)
    row_by_value = {
        float(f"{10.0**tick:.6g}") if spec.is_logarithmic else tick: row for row, tick in tick_by_row.items()
    }
    labels = labeled_ticks(tuple(row_by_value), _value_formats(sorted(row_by_value), spec))
    row_by_text: dict[str, int] = {}
    for value, text in labels:
        row_by_text.setdefault(clip(text, max(1, max_cells)), row_by_value[value])
    return {row: text for text, row in row_by_text.items()}


def _value_formats(values: Sequence[float], spec: ChartSpec) -> Iterable[LabelFormat]:
    if spec.unit is None and not spec.is_logarithmic:
        return number_formats(values)
    unit = spec.unit or number
    return (number, *number_formats(values)) if unit is number else (unit,)


def x_axis_line(spec: ChartSpec, width: int, margin: int) -> Line:
    """Return the x axis: a rule with tick labels and the marks of events.

    Only the label of the cursor may cover a mark. If marks of the tone "good" (checkpoints) would hide more
    than half of the tick labels, none of these marks is shown: a few could be mistaken for all.
    """
    cells = width - margin
    grid = braille.Grid.over(spec.start, spec.end, cells * braille.DOTS_PER_CELL_X)
    canvas = Canvas(width, 1)
    canvas.write(0, 0, " " * (margin - 1) + "└" + "─" * cells, "axis")
    ticks = time_ticks(
        spec.start, spec.end, cells, axis=spec.x_axis, end_label=spec.end_label, origin=spec.origin
    )
    cursor_label, cursor_begin = "", 0
    if spec.cursor is not None and spec.start <= spec.cursor <= spec.end:
        cursor_label = position_label(spec.cursor, spec.x_axis, origin=spec.origin)
        cursor_begin = _label_begin(spec.cursor, cursor_label, spec, width, margin)
    cursor_cells = {*range(cursor_begin, cursor_begin + len(cursor_label))}
    marks = {margin + column: mark for column, mark in _marks_by_cell(spec.marks, grid, cells).items()}
    labels = [(_label_begin(x, text, spec, width, margin), text) for x, text in ticks]
    if 2 * len(_labels_that_fit(labels, marks.keys(), width, margin)) < len(ticks):
        marks = {column: mark for column, mark in marks.items() if mark.tone != "good"}
    for column, mark in marks.items():
        canvas.write(0, column, mark.sign, f"mark-{mark.tone}")
    for begin, text in _labels_that_fit(labels, cursor_cells | marks.keys(), width, margin):
        canvas.write(0, begin - 1, f" {text} "[: width - begin + 1], "axis")
    canvas.write(0, cursor_begin, cursor_label, "cursor")
    return canvas.lines()[0]


def _labels_that_fit(
    labels: Sequence[tuple[int, str]], occupied_cells: Set[int], width: int, margin: int
) -> list[tuple[int, str]]:
    """Return the labels (first cell, text) that overlap neither another label nor an occupied cell."""
    next_begin, fitting_labels = width, []
    for begin, text in reversed(labels):  # from the right, so that the newest label takes precedence
        end = begin + len(text)
        if begin > margin and end <= next_begin and occupied_cells.isdisjoint(range(begin - 1, end + 1)):
            next_begin = begin - 1
            fitting_labels.append((begin, text))
    return fitting_labels


def _label_begin(x: float, text: str, spec: ChartSpec, width: int, margin: int) -> int:
    """Return the first cell of a label on the x axis: centered at ``x``, but within the axis."""
    column = margin + round((x - spec.start) / (spec.end - spec.start) * (width - margin - 1))
    return max(0, min(max(margin + 1, column - len(text) // 2), width - len(text)))


def mark_at(spec: ChartSpec, cells: int, x: float) -> Mark | None:
    """Return the mark in the cell of a position on the x axis, if there is one."""
    grid = braille.Grid.over(spec.start, spec.end, cells * braille.DOTS_PER_CELL_X)
    return _marks_by_cell(spec.marks, grid, cells).get(grid.column(x) // braille.DOTS_PER_CELL_X)


def _marks_by_cell(marks: tuple[Mark, ...], grid: braille.Grid, cells: int) -> dict[int, Mark]:
    marks_by_cell: dict[int, Mark] = {}
    for mark in sorted(marks, key=lambda mark: _TONES_BY_SEVERITY.index(mark.tone)):
        dot_column = grid.column(mark.at)  # -1 at ``spec.start`` if the grid begins a little later
        column = max(0, dot_column) // braille.DOTS_PER_CELL_X
        if dot_column >= -1 and column < cells:
            marks_by_cell[column] = mark
    return marks_by_cell


@dataclass(frozen=True, slots=True)
class Picture:
    """The lines of a chart. Its raster is ``cells`` columns wide and begins at column ``left``.

    ``cells`` is 0 if the chart is too small for axes.
    """

    lines: list[Line]
    left: int = 0
    cells: int = 0


def draw_picture(series: Sequence[Series], spec: ChartSpec, width: int, height: int) -> Picture:
    """Draw a chart of ``height`` lines of ``width`` cells; with less than 20 × 4 cells, only its header."""
    if width <= 0 or height <= 0:
        return Picture([])
    rows = height - 2
    ticks = _ticks(series, spec, rows)
    has_room = width >= 20 and height >= 4
    if ticks is None or not has_room:
        legend = legend_entries(series, spec) if any(curve.values for curve in series) else []
        title = header_line(spec.title, legend, width, spec.unit or number, spec, note=(spec.note, "note"))
        message = _empty_reason(series, spec) if ticks is None else ""
        return Picture([title, *_centered_message(message, width, height - 1)])
    labels = value_labels(ticks, spec, rows, width // 3)
    # Usually the minimum of 8, so that the rasters of charts below each other are aligned.
    margin = max(8, *(cell_len(text) for text in labels.values())) + 1
    unit = (spec.unit or number) if spec.cursor is None else spec.exact
    legend = legend_entries(series, spec)
    table = legend_table(legend, spec, unit, width - margin, height - 1)
    table_cells = sum(cell_len(text) for text, _ in table[0]) if table else 0
    cells = width - margin - table_cells
    raster = draw_raster(series, spec, cells, rows, (ticks[0], ticks[-1]))
    body: list[Line] = []
    for row, line in enumerate(raster):
        text = labels.get(row, "")
        axis = " " * (margin - 1 - cell_len(text)) + text + ("┤" if text else "│")
        body.append([(axis, "axis"), *line])
    body.append(x_axis_line(spec, width - table_cells, margin))
    body = [[*line, *table_line] for line, table_line in zip(body, table or [[]] * len(body), strict=True)]
    title = header_line(spec.title, () if table else legend, width, unit, spec, note=_note_run(spec, cells))
    return Picture([title, *body], margin, cells)


def _ticks(series: Sequence[Series], spec: ChartSpec, rows: int) -> tuple[float, ...] | None:
    """Return the ticks of the value axis (logarithms on a logarithmic axis); None without values."""
    visible_series = [curve for curve in series if curve.name not in spec.hidden]
    value_range = extent(
        map(logarithmic, visible_series) if spec.is_logarithmic else visible_series, spec.start, spec.end
    )
    if value_range is None:
        return None
    low, high = value_range
    max_ticks = max(2, rows // 4 + 1)
    if spec.is_logarithmic:
        return log_ticks(low, high, max_ticks, fixed_high=log10(spec.y_max) if spec.y_max else None)
    missing = spec.min_relative_range * max(abs(low), abs(high)) - (high - low)
    if missing > 0:
        low, high = low - missing / 2, high + missing / 2
    return value_ticks(low, high, max_ticks, fixed_low=spec.y_min, fixed_high=spec.y_max, base=spec.tick_base)


def _empty_reason(series: Sequence[Series], spec: ChartSpec) -> str:
    """Return why a chart has nothing to draw."""
    if series and all(curve.name in spec.hidden for curve in series):
        return "all series hidden"
    if any(spec.start <= time_s <= spec.end for curve in series for time_s in curve.times[-1:]):
        if any(isinf(value) for curve in series for value in curve.values[-1:]):
            return "no finite values"
        return "no values above zero" if spec.is_logarithmic else spec.empty_text
    return "no data in this time range" if any(curve.times for curve in series) else spec.empty_text


def _note_run(spec: ChartSpec, cells: int) -> Run:
    """Return the text on the right of the header: the mark at the cursor, else the note of the spec."""
    if spec.cursor is not None and (mark := mark_at(spec, cells, spec.cursor)) is not None:
        return f"{mark.sign} {mark.text}".rstrip(), f"mark-{mark.tone}"
    return spec.note, "note"


def _centered_message(text: str, width: int, height: int) -> list[Line]:
    blank: Line = [(" " * width, "blank")]
    lines = [list(blank) for _ in range(height)]
    if height:
        message = clip(sanitize(text), width)
        left = (width - cell_len(message)) // 2
        padded = " " * left + message + " " * (width - left - cell_len(message))
        lines[height // 2 if height > 1 else 0] = [(padded, "empty")]
    return lines
