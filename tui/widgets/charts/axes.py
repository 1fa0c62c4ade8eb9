"""The axes around a chart's raster: labels of values at the left, places and marks below."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len

from tui.insight.text import clip
from tui.widgets.charts import braille
from tui.widgets.charts.spec import ChartSpec, Line, Mark, Role
from tui.widgets.charts.ticks import place_label, time_ticks

_SEVERITY = {"good": 0, "caution": 1, "bad": 2}


def value_labels(
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


def time_lines(spec: ChartSpec, width: int, margin: int, has_rule: bool) -> list[Line]:
    """The line of labels, below a rule where there is room for one; marks lie on the upper of the two."""
    cells = width - margin
    grid = braille.Grid.over(spec.start, spec.end, cells * braille.DOTS_PER_CELL_X)
    labels: list[tuple[str, Role]] = [(" ", "axis")] * width
    rule: list[tuple[str, Role]] = [("─", "axis")] * cells
    taken = _cursor_label(spec, grid, labels, margin)
    ticks = time_ticks(
        spec.start,
        spec.end,
        cells,
        axis=spec.x_axis,
        end_label=spec.end_label,
        timezone=spec.timezone,
        origin=spec.origin,
    )
    limit = width + 1
    for moment, text in reversed(ticks):  # from the right, so that the present is never crowded out
        column = margin + round((moment - spec.start) / (spec.end - spec.start) * (cells - 1))
        begin = max(0, min(column - len(text) // 2, width - len(text)))
        if begin + len(text) + 1 > limit or not _clear(begin, len(text), taken):
            continue
        limit = begin
        rule[min(cells - 1, column - margin)] = ("┬", "axis")
        labels[begin : begin + len(text)] = [(character, "axis") for character in text]
    for column, mark in _marks_by_cell(spec.marks, grid, cells).items():
        if has_rule:
            rule[column] = (mark.sign, f"mark-{mark.tone}")
        elif labels[margin + column][0] == " ":
            labels[margin + column] = (mark.sign, f"mark-{mark.tone}")
    lines: list[Line] = []
    if has_rule:
        lines.append(_merged([*((" ", "axis") for _ in range(margin - 1)), ("└", "axis"), *rule]))
    lines.append(_merged(labels[:width]))
    return lines


def mark_at(spec: ChartSpec, cells: int, x: float) -> Mark | None:
    """The mark in the same cell as a place on the axis."""
    grid = braille.Grid.over(spec.start, spec.end, cells * braille.DOTS_PER_CELL_X)
    return _marks_by_cell(spec.marks, grid, cells).get(grid.column(x) // braille.DOTS_PER_CELL_X)


def _marks_by_cell(marks: tuple[Mark, ...], grid: braille.Grid, cells: int) -> dict[int, Mark]:
    found: dict[int, Mark] = {}
    for mark in marks:
        column = grid.column(mark.at) // braille.DOTS_PER_CELL_X
        if 0 <= column < cells:
            held = found.get(column)
            if held is None or _SEVERITY[mark.tone] >= _SEVERITY[held.tone]:
                found[column] = mark
    return found


def _cursor_label(
    spec: ChartSpec, grid: braille.Grid, labels: list[tuple[str, Role]], margin: int
) -> tuple[int, int] | None:
    """Where the cursor is, in words below it. Returns the cells that they take."""
    if spec.cursor is None:
        return None
    column = grid.column(spec.cursor) // braille.DOTS_PER_CELL_X
    if not 0 <= column < len(labels) - margin:
        return None
    text = place_label(spec.cursor, spec.x_axis, origin=spec.origin, timezone=spec.timezone)
    text = clip(text, len(labels))
    begin = max(0, min(margin + column - cell_len(text) // 2, len(labels) - cell_len(text)))
    labels[begin : begin + len(text)] = [(character, "cursor") for character in text]
    return begin, begin + len(text)


def _clear(begin: int, length: int, taken: tuple[int, int] | None) -> bool:
    return taken is None or begin + length < taken[0] or begin > taken[1]


def _merged(characters: list[tuple[str, Role]]) -> Line:
    """Neighbours of one role as one run."""
    line: Line = []
    for character, role in characters:
        if line and line[-1][1] == role:
            line[-1] = (line[-1][0] + character, role)
        else:
            line.append((character, role))
    return line
