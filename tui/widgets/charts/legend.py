"""The legend of a chart: in the line above the chart, or as a table to the right of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len

from tui.text.names import abbreviated_names, common_prefix_length
from tui.text.sanitize import clip, sanitize
from tui.widgets.charts.series_groups import HIDDEN_SIGN, SELECTED_SIGN, Entry
from tui.widgets.charts.spec import ChartSpec, Line, Readout, Role, Run, signed

_SEPARATOR = "  "
_MAX_NAME_CELLS = 24


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without their common prefix, which ends with a separator: "node-0" → "0"."""
    prefix_length = common_prefix_length(names) if names else 0
    return [name[prefix_length:] or name for name in names]


def header_line(
    title: str,
    entries: Sequence[Entry],
    width: int,
    unit: Callable[[float], str],
    spec: ChartSpec,
    *,
    note: Run = ("", "note"),
) -> Line:
    """Return the line above a chart: title, the longest legend that fits, and a note on the right."""
    note_text, note_role = clip(sanitize(note[0]), width // 2), note[1]
    # Without a note, leave a cell free before the title of a chart on the right.
    room = max(0, width - (cell_len(note_text) + len(_SEPARATOR) if note_text else 1))
    title = clip(sanitize(title), room)
    title_parts: list[Line] = [[(title, "title")]] if title else []
    legend_room = room - (cell_len(title) + len(_SEPARATOR) if title else 0)
    runs = _join(title_parts + _legend(entries, legend_room, unit, spec))
    filler = " " * (width - _width(runs) - cell_len(note_text))
    return [run for run in (*runs, (filler, "legend"), (note_text, note_role)) if run[0]]


def _legend(entries: Sequence[Entry], room: int, unit: Callable[[float], str], spec: ChartSpec) -> list[Line]:
    """Return the longest legend that fits, as one ``Line`` per entry.

    A single series has its value, and the extremes of the time range if they fit. Of several series, each has
    sign, name and value. To save room, in this order: names lose their common prefix; values are dropped,
    unless there is a cursor; names are cut while they stay distinct; the last entries become "+3".
    """
    if len(entries) == 1 and isinstance(entries[0].role, int):
        return _single_series(entries[0].readout(), room, unit)
    full_names = [entry.name for entry in entries]
    names_without_prefix = short_names(full_names)
    values = [_value_text(entry.readout(), unit) for entry in entries]
    needed_values = values if spec.cursor is not None else [""] * len(entries)
    name_room = (room + len(_SEPARATOR)) // max(1, len(entries)) - len(_SEPARATOR) - len("━ ")
    name_cells = max(4, min(_MAX_NAME_CELLS, name_room - max(map(cell_len, needed_values), default=0)))
    legend_forms = [
        (full_names, _MAX_NAME_CELLS, values),
        (names_without_prefix, _MAX_NAME_CELLS, values),
        (names_without_prefix, _MAX_NAME_CELLS, needed_values),
        (names_without_prefix, name_cells, needed_values),
    ]
    for form_names, max_cells, form_values in legend_forms:
        cut_names = abbreviated_names(form_names, max_cells)
        items = _items(entries, cut_names, form_values)
        if _width(_join(items)) <= room and len(set(cut_names)) == len(set(full_names)):
            return items
    items = _items(entries, abbreviated_names(names_without_prefix, _MAX_NAME_CELLS), needed_values)
    # An entry takes at least four cells, so only the first room // 4 can fit.
    for fitting_count in range(min(len(items) - 1, room // 4), -1, -1):
        with_rest: list[Line] = [*items[:fitting_count], [(f"+{len(items) - fitting_count}", "legend")]]
        if _width(_join(with_rest)) <= room:
            return with_rest
    return []


def _single_series(readout: Readout, room: int, unit: Callable[[float], str]) -> list[Line]:
    if readout.value is None:
        return [[("–", "legend")]] if readout.low is not None and room > 0 else []
    text, extremes = unit(readout.value), ""
    if readout.low is not None and readout.high is not None:
        extremes = f"  {unit(readout.low)} … {unit(readout.high)}"
    if cell_len(text + extremes) <= room:
        return [[(text, 0), (extremes, "legend")]]
    return [[(text, 0)]] if cell_len(text) <= room else []


def _value_text(readout: Readout, unit: Callable[[float], str]) -> str:
    if readout.value is None:
        return " –"
    return f" {unit(readout.value)}" + (f" {signed(readout.change, unit)}" if readout.change else "")


def _items(entries: Sequence[Entry], names: Sequence[str], values: Sequence[str]) -> list[Line]:
    return [
        [(f"{entry.sign} {name}", entry.role), (value, "legend")]
        for entry, name, value in zip(entries, names, values, strict=True)
    ]


def _join(items: Sequence[Line]) -> Line:
    separator: Run = (_SEPARATOR, "legend")
    return [run for item in items for run in (separator, *item)][1:]


def _width(runs: Line) -> int:
    return sum(cell_len(text) for text, _ in runs)


def legend_table(
    entries: Sequence[Entry], spec: ChartSpec, unit: Callable[[float], str], width: int, rows: int
) -> list[Line] | None:
    """Return the legend as ``rows`` lines of equal width; None for fewer than three series, or without room.

    If not all series fit, the series around the selected one are listed.
    """
    if len(entries) < 3 or rows < 5:
        return None
    names = [entry.name for entry in entries]
    names = abbreviated_names(short_names(names) if len(entries) > rows else names, 14)
    has_changes = bool(spec.baseline) and spec.cursor is not None
    titles = ["last" if spec.cursor is None else "at │", *(["Δ"] if has_changes else ["min", "max"])]
    indices, unlisted_count = _listed_entries(entries, rows - 1)
    value_texts = [_value_texts(entries[index].readout(), unit, has_changes=has_changes) for index in indices]
    widths = [max(map(cell_len, column)) for column in zip(titles, *value_texts, strict=True)]
    name_cells = len("━ ") + max(cell_len(names[index]) for index in indices)
    table_cells = len(_SEPARATOR) + name_cells + sum(cells + 1 for cells in widths)
    if width - table_cells < 36:  # minimum width of a raster beside a table
        return None

    def line(label: str, role: Role, texts: Sequence[str], text_role: Role) -> Line:
        aligned_texts = "".join(
            " " * (cells + 1 - cell_len(text)) + text for text, cells in zip(texts, widths, strict=True)
        )
        return [
            (_SEPARATOR, "blank"),
            (label, role),
            (" " * (name_cells - cell_len(label)) + aligned_texts, text_role),
        ]

    lines = [line(" ", "axis", titles, "axis")]
    for index, texts in zip(indices, value_texts, strict=True):
        entry = entries[index]
        text_role = "off" if is_hidden(entry) else "legend"
        lines.append(line(f"{entry.sign} {names[index]}", entry.role, texts, text_role))
    if unlisted_count:
        more = f"{_SEPARATOR}+{unlisted_count} more"
        lines.append([(more.ljust(table_cells)[:table_cells], "axis")])
    blank: Line = [(" " * table_cells, "blank")]
    return [*lines, *[blank] * (rows - len(lines))]


def _value_texts(readout: Readout, unit: Callable[[float], str], *, has_changes: bool) -> list[str]:
    values = [readout.value] if has_changes else [readout.value, readout.low, readout.high]
    texts = ["–" if value is None else unit(value) for value in values]
    if has_changes:
        texts.append("" if readout.change is None else signed(readout.change, unit))
    return texts


def is_hidden(entry: Entry) -> bool:
    return entry.sign == HIDDEN_SIGN


def _listed_entries(entries: Sequence[Entry], rows: int) -> tuple[Sequence[int], int]:
    """Return the indices of the entries to list, around the selected one, and the number of the others."""
    if len(entries) <= rows:
        return range(len(entries)), 0
    listed_count = rows - 1  # the last row has the number of other entries
    selected = next((index for index, entry in enumerate(entries) if entry.sign == SELECTED_SIGN), 0)
    begin = max(0, min(selected - listed_count // 2, len(entries) - listed_count))
    return range(begin, begin + listed_count), len(entries) - listed_count
